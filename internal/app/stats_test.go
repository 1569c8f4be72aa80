package app

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/api"
	"github.com/waybillhq/waybill/logistica/notify"
	"github.com/waybillhq/waybill/push"
)

// What couriers' devices say the time is must not decide what merchants may send.
func TestPositionsSayNothingOfTheRoomThereIs(t *testing.T) {
	a := &App{metrics: prometheus.NewRegistry(), started: time.Now().Add(-time.Hour)}
	delays := api.NewDelays()
	route := a.timed(func(context.Context, *kgo.Record, *event.Envelope) ([]push.Delivery, error) { return nil, nil }, delays)
	for _, topic := range notify.Topics() {
		// Of a fix that is a second old.
		if _, err := route(t.Context(), &kgo.Record{Topic: topic}, &event.Envelope{Time: time.Now().Add(-time.Second)}); err != nil {
			t.Fatal(err)
		}
		counted := *delays != *api.NewDelays()
		if latest := slices.Contains(notify.LatestTopics(), topic); counted == latest {
			t.Errorf("%s is counted: %v", topic, counted)
		}
		*delays = *api.NewDelays()
	}
}
