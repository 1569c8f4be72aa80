package lag

import "testing"

func TestMetricsOfManyPartitionsAreOfTheirTopics(t *testing.T) {
	cfg := quick()
	cfg.MetricPartitions = 2
	w := newWorld(t, 3, cfg)
	w.publish(0, 5, 0)
	w.publish(2, 4, 0)
	w.mark(0, 2)
	w.mark(2, 1)
	w.look(0)
	if v, ok := w.metric("waybill_consumer_lag_events", map[string]string{"topic": w.topic, "partition": ""}); !ok || v != 6 {
		t.Errorf("%v %v", v, ok)
	}
	if _, ok := w.metric("waybill_consumer_lag_events", map[string]string{"partition": "0"}); ok {
		t.Error("there is one of each partition too")
	}
	if v, ok := w.metric("waybill_consumer_state", map[string]string{"state": "no members"}); !ok || v != 1 {
		t.Errorf("the gravest state: %v %v", v, ok)
	}
}

func TestWhatIsPastTheBoundIsCountedNotForgotten(t *testing.T) {
	cfg := quick()
	cfg.MaxPartitions = 2
	w := newWorld(t, 3, cfg)
	w.publish(0, 5, 0)
	w.commit(0, 2)
	s := w.m.Look(t.Context())
	if len(s.Groups) != 0 || s.LeftOut != 3 {
		t.Errorf("%d groups, %d left out", len(s.Groups), s.LeftOut)
	}
	if v, ok := w.metric("waybill_lag_partitions_left_out", nil); !ok || v != 3 {
		t.Errorf("%v %v", v, ok)
	}
}
