package proc

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/broker/brokertest"
)

// clean removes the program's topics and groups from a Kafka: another test's
// database knows nothing of them.
func clean(t testing.TB, e *brokertest.Engine) {
	t.Helper()
	adm := kadm.NewClient(e.Client(t, kgo.MetadataMinAge(10*time.Millisecond)))
	if _, err := adm.DeleteGroups(t.Context(), "analytics"); err != nil {
		t.Fatal(err)
	}
	names := []string{"orders.events", "_schemas"}
	if _, err := adm.DeleteTopics(t.Context(), names...); err != nil {
		t.Fatal(err)
	}
	// Deletion is only begun: a topic made anew too early would go with it.
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for range 200 {
		there, err := adm.ListTopics(kadm.WithAuthorizedOps(t.Context()), names...)
		if err == nil && !there.Has(names[0]) && !there.Has(names[1]) {
			return
		}
		<-tick.C
	}
	t.Fatal("topics of an earlier test are not gone after 10 s")
}
