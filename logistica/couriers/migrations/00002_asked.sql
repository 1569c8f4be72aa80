-- +goose Up

-- What orders was asked for last, so that a courier who says it again and again
-- fills no topic.
ALTER TABLE couriers.reservations ADD COLUMN asked text CHECK (asked IN ('EXPIRED', 'DECLINED', 'REASSIGNED'));

-- +goose Down
ALTER TABLE couriers.reservations DROP COLUMN asked;
