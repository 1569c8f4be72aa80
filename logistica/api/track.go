package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/waybillhq/waybill/logistica/orders"
)

// Tracking is an order as anybody with its link sees it.
type Tracking struct {
	State      string        `json:"state"`
	Version    int64         `json:"version" doc:"Sequence of the newest event this holds."`
	Merchant   string        `json:"merchant" doc:"Whom it was ordered from."`
	CreatedAt  time.Time     `json:"created_at"`
	PromisedAt *time.Time    `json:"promised_at,omitempty"`
	Items      []TrackedItem `json:"items" nullable:"false"`
	Timeline   []Moment      `json:"timeline" nullable:"false" doc:"Oldest first."`

	Pickup  TrackedPlace `json:"pickup" doc:"Where it is collected, to about a hundred metres."`
	Dropoff TrackedPlace `json:"dropoff" doc:"Where it goes, to about a hundred metres."`

	DeliveryCode string           `json:"delivery_code,omitempty" doc:"What the customer tells the courier at the door; left out once the order has ended."`
	Courier      *TrackedCourier  `json:"courier,omitempty" doc:"Who carries it, until it has ended."`
	Position     *TrackedPosition `json:"position,omitempty" doc:"Where the courier is, while one is out with the order."`
	PickupETA    *time.Time       `json:"pickup_eta,omitempty" doc:"When the courier is expected at the merchant."`
	ETA          *time.Time       `json:"eta,omitempty" doc:"When the courier is expected at the customer, by where they are once they are out."`
}

// TrackedCourier is a courier as a customer sees them.
type TrackedCourier struct {
	FirstName string `json:"first_name,omitempty"`
	Vehicle   string `json:"vehicle,omitempty" doc:"MOTORBIKE, BICYCLE or CAR."`
}

// TrackedPlace is about where a place is.
type TrackedPlace struct {
	Lat float64 `json:"lat" doc:"Degrees, in thousandths."`
	Lng float64 `json:"lng" doc:"Degrees, in thousandths."`
}

// TrackedItem is a line of an order, without its price.
type TrackedItem struct {
	Name     string `json:"name"`
	Quantity int32  `json:"quantity"`
}

// Moment is when the order reached a state.
type Moment struct {
	State string    `json:"state"`
	At    time.Time `json:"at"`
}

type trackInput struct {
	Token string `path:"token" doc:"The order's tracking token."`
}

type trackOutput struct{ Body Tracking }

func (s *service) trackRoutes() {
	route(s, huma.Operation{
		OperationID: "track-order", Method: http.MethodGet, Path: "/v1/track/{token}",
		Summary: "Follow an order by its tracking link", Errors: []int{404, 429, 503},
		Description: "Public: no key, no personal data of the customer, no prices. While the order is under way it has the delivery code and its courier's first name and vehicle.",
		Security:    []map[string][]string{}, Metadata: public,
	}, s.track)
}

func (s *service) track(ctx context.Context, in *trackInput) (*trackOutput, error) {
	t, err := s.Orders.Track(ctx, in.Token)
	if err != nil {
		return nil, err
	}
	merchant, err := s.Directory.Name(ctx, t.Tenant)
	if err != nil {
		return nil, err
	}
	out := &trackOutput{trackingJSON(t, merchant)}
	if !t.State.Ended() {
		out.Body.DeliveryCode = string(t.Code)
		s.trackCourier(ctx, t, &out.Body)
	}
	s.locate(ctx, t.OrderID, &out.Body)
	return out, nil
}

// trackCourier adds who is on the way.
func (s *service) trackCourier(ctx context.Context, t orders.Tracking, out *Tracking) {
	if t.Courier == uuid.Nil {
		return
	}
	card := s.cards(ctx, t.Tenant, []uuid.UUID{t.Courier})[t.Courier]
	if card.Vehicle == "" {
		card.Vehicle = t.Vehicle
	}
	out.Courier = &TrackedCourier{FirstName: firstName(card.Name), Vehicle: card.Vehicle}
	out.PickupETA, out.ETA = t.PickupETA, t.DeliveryETA
}

func trackingJSON(t orders.Tracking, merchant string) Tracking {
	out := Tracking{
		State: string(t.State), Version: t.Version, Merchant: merchant,
		CreatedAt: t.Timeline[0].At, PromisedAt: t.PromisedAt,
		Pickup: TrackedPlace(t.Pickup), Dropoff: TrackedPlace(t.Dropoff),
		Items: make([]TrackedItem, len(t.Items)), Timeline: make([]Moment, len(t.Timeline)),
	}
	for i, item := range t.Items {
		out.Items[i] = TrackedItem(item)
	}
	for i, m := range t.Timeline {
		out.Timeline[i] = Moment{State: string(m.State), At: m.At}
	}
	return out
}
