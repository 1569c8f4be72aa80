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
	names := []string{"orders.events", "_schemas"}
	if _, err := adm.DeleteTopics(t.Context(), names...); err != nil {
		t.Fatal(err)
	}
	// Deletion is only begun: a topic made anew too early would go with it.
	eventually(t, "delete topics", func() error {
		there, err := adm.ListTopics(t.Context(), names...)
		if err == nil && (there.Has(names[0]) || there.Has(names[1])) {
			err = errors.New("still there")
		}
		return err
	})
	// A Kafka that has just started has no coordinator yet.
	eventually(t, "delete groups", func() error {
		_, err := adm.DeleteGroup(t.Context(), "analytics")
		if errors.Is(err, kerr.GroupIDNotFound) {
			err = nil
		}
		return err
	})
}

func eventually(t testing.TB, what string, try func() error) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	late := time.After(20 * time.Second)
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
