package broker_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/broker/brokertest"
)

func TestDeclaringTwiceChangesNothing(t *testing.T) {
	e := brokertest.New(t)
	cl := e.Client(t)
	topic := broker.Topic{Name: brokertest.Topic(t, "accounts"), Partitions: 3, Retention: time.Hour, RetentionBytes: 1 << 20}
	for range 2 {
		if err := broker.Declare(t.Context(), cl, e.Capabilities, topic); err != nil {
			t.Fatal(err)
		}
	}
	infos, err := broker.ListTopics(t.Context(), cl, topic.Name)
	if err != nil {
		t.Fatal(err)
	}
	if len(infos) != 1 || infos[0].Partitions != 3 || infos[0].Records == nil || *infos[0].Records != 0 {
		t.Fatalf("got %+v", infos)
	}
	if d, ok := infos[0].Retention(); !ok || d != time.Hour {
		t.Errorf("retention = %v, %v", d, ok)
	}
}

func TestDriftNamesWhatIsAndWhatShouldBe(t *testing.T) {
	e := brokertest.New(t)
	cl := e.Client(t)
	name := brokertest.Topic(t, "accounts")
	if err := broker.Declare(t.Context(), cl, e.Capabilities, broker.Topic{Name: name, Partitions: 3, Retention: time.Hour}); err != nil {
		t.Fatal(err)
	}
	err := broker.Declare(t.Context(), cl, e.Capabilities, broker.Topic{Name: name, Partitions: 5, Retention: 2 * time.Hour})
	var drift *broker.DriftError
	if !errors.As(err, &drift) || drift.Topic != name || len(drift.Drifts) != 2 {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{name, "partitions is 3, should be 5", "retention.ms is 3600000, should be 7200000"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q lacks %q", err, want)
		}
	}
}
