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

// What couriers' devices say the time is must not decide what merchants may send,
// nor how much a module does at once: only what requests made counts.
func TestWhatRequestsMadeTellsOfTheRoomThereIs(t *testing.T) {
	a := &App{metrics: prometheus.NewRegistry(), started: time.Now().Add(-time.Hour)}
	delays := api.NewDelays()
	route := a.timed(func(context.Context, *kgo.Record, *event.Envelope) ([]push.Delivery, error) { return nil, nil }, delays)
	for _, topic := range notify.Topics() {
		for cause, counts := range map[string]bool{"request": !slices.Contains(notify.LatestTopics(), topic), "another": false, "": false} {
			env := &event.Envelope{Time: time.Now().Add(-time.Second), CorrelationID: "request", CausationID: cause}
			if _, err := route(t.Context(), &kgo.Record{Topic: topic}, env); err != nil {
				t.Fatal(err)
			}
			if counted := *delays != *api.NewDelays(); counted != counts {
				t.Errorf("%s with the cause %q is counted: %v", topic, cause, counted)
			}
			*delays = *api.NewDelays()
		}
	}
}
