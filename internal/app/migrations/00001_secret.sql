-- +goose Up

-- Random keys that all processes of one installation share, made by whichever
-- starts first.
CREATE TABLE waybill.secret (
    name  text  NOT NULL PRIMARY KEY,
    value bytea NOT NULL CHECK (length(value) = 32)
);

-- +goose Down
DROP TABLE waybill.secret;
