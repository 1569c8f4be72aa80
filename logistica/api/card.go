package api

import (
	"context"
	"strings"

	"github.com/google/uuid"

	"github.com/waybillhq/waybill/event"
)

// CourierCard is a courier as a merchant sees whom an order of theirs is with.
type CourierCard struct {
	ID      uuid.UUID `json:"id" format:"uuid"`
	Name    string    `json:"name,omitempty"`
	Vehicle string    `json:"vehicle,omitempty" doc:"MOTORBIKE, BICYCLE or CAR."`
}

// CourierCards knows couriers by id, as tenant may see them. One it does not
// know is left out.
type CourierCards interface {
	Cards(ctx context.Context, tenant uuid.UUID, ids []uuid.UUID) (map[uuid.UUID]CourierCard, error)
}

// cards is what is known of couriers. A name adds to an answer and must not take
// it away, least of all the answer to a move that was made: where it cannot be
// read it is left out, and told here.
func (s *service) cards(ctx context.Context, tenant uuid.UUID, ids []uuid.UUID) map[uuid.UUID]CourierCard {
	if s.Couriers == nil || len(ids) == 0 {
		return nil
	}
	cards, err := s.Couriers.Cards(ctx, tenant, ids)
	if err != nil {
		s.Logger.WarnContext(ctx, "couriers' names are left out", "request_id", event.Correlation(ctx), "error", err)
	}
	return cards
}

// firstName is all that a customer is told of a courier's name.
func firstName(name string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(name), " ")
	return first
}
