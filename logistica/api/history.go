package api

import (
	"context"
	"time"
)

// Change is when an order reached a state, by whom and why.
type Change struct {
	State  string    `json:"state"`
	At     time.Time `json:"at"`
	Actor  string    `json:"actor" doc:"MERCHANT, COURIER or SYSTEM."`
	Reason string    `json:"reason,omitempty" doc:"Why, where somebody said. The search for a courier says NO_COURIER, DECLINED, REASSIGNED, EXPIRED, NOTIFICATION_FAILED, FEE_FAILED or OPERATOR."`
}

type readInput struct {
	OrderPath
	History bool `query:"history" doc:"With how it came to its state."`
}

func (s *service) getOrder(ctx context.Context, in *readInput) (*orderOutput, error) {
	id, err := in.order()
	if err != nil {
		return nil, err
	}
	tenant := tenantOf(ctx).ID
	o, err := s.Orders.Get(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	out := s.orderAnswer(ctx, o)
	if !in.History {
		return out, nil
	}
	changes, err := s.Orders.History(ctx, tenant, id)
	for _, c := range changes {
		out.Body.History = append(out.Body.History, Change{string(c.State), c.At, string(c.Actor), c.Reason})
	}
	return out, err
}
