package proc

import (
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/broker/brokertest"
)

// clean removes the program's topics and groups from a Kafka: another test's
// database knows nothing of them.
func clean(t testing.TB, e *brokertest.Engine) {
	t.Helper()
	adm := kadm.NewClient(e.Client(t, kgo.MetadataMinAge(10*time.Millisecond)))
	names := []string{"_schemas", "orders.events", "couriers.events", "couriers.reservations", "billing.events", "dispatch.events", "saga.events"}
	if _, err := adm.DeleteTopics(t.Context(), names...); err != nil {
		t.Fatal(err)
	}
	// Deletion is only begun: a topic made anew too early would go with it.
	eventually(t, "delete topics", func() error {
		there, err := adm.ListTopics(t.Context(), names...)
		for _, name := range names {
			if err == nil && there.Has(name) {
				err = errors.New(name + " is still there")
			}
		}
		return err
	})
	// A Kafka that has just started has no coordinator yet.
	eventually(t, "delete groups", func() error {
		answers, err := adm.DeleteGroups(t.Context(), "analytics", "orders", "couriers", "billing", "dispatch", "tracking", "saga", "webhook")
		for _, a := range answers {
			if err == nil && a.Err != nil && !errors.Is(a.Err, kerr.GroupIDNotFound) {
				err = a.Err
			}
		}
		return err
	})
}

func eventually(t testing.TB, what string, try func() error) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	late := time.After(2 * time.Minute)
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("%s: not within 20 s: %v", what, err)
		}
	}
}
