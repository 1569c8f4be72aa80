package lag

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestTimeBehindIsTheAgeOfTheRecordThatIsReadNext(t *testing.T) {
	w := newWorld(t, 2, quick())
	w.publish(0, 3, time.Hour)
	w.publish(0, 4, 10*time.Minute)
	w.mark(0, 3)
	p := w.until("it is known", 0, func(p Partition) bool { return p.Seconds != nil })
	if *p.Seconds < 599 || *p.Seconds > 700 || !p.Exact || *p.Lag != 4 || !p.Ours {
		t.Errorf("%+v, %v s", p, *p.Seconds)
	}
	if v, ok := w.metric("waybill_consumer_lag_seconds", map[string]string{"exact": "true", "partition": "0"}); !ok || v < 599 {
		t.Errorf("metric: %v %v", v, ok)
	}
	// The other partition is empty: nothing is behind there.
	if p := w.look(1); p.Lag == nil || *p.Lag != 0 || p.State != OK {
		t.Errorf("the empty one: %+v", p)
	}
	w.mark(0, 7)
	p = w.look(0)
	if p.Seconds == nil || *p.Seconds != 0 || *p.Lag != 0 || p.State != OK {
		t.Errorf("caught up and idle: %+v", p)
	}
}

func TestTheDatabasesWatermarkCountsNotTheBrokersOffset(t *testing.T) {
	w := newWorld(t, 1, quick())
	w.publish(0, 10, 0)
	w.commit(0, 2)
	if p := w.look(0); p.Ours || *p.Lag != 8 {
		t.Errorf("a group of the broker's: %+v", p)
	}
	w.mark(0, 9)
	if p := w.look(0); !p.Ours || *p.Lag != 1 {
		t.Errorf("one of ours: %+v", p)
	}
}

func TestAPartitionWithoutACommitIsUnknownNotZero(t *testing.T) {
	w := newWorld(t, 2, quick())
	w.publish(0, 5, 0)
	w.publish(1, 5, 0)
	w.commit(0, 5)
	if p := w.look(1); p.Lag != nil || p.Seconds != nil || p.State != Unknown || !strings.Contains(p.Why, "never committed") {
		t.Errorf("%+v", p)
	}
	if _, ok := w.metric("waybill_consumer_lag_events", map[string]string{"partition": "1"}); ok {
		t.Error("the metric is there")
	}
	if g := w.m.Latest().Group(w.group); g.Lag != nil || !g.Partial {
		t.Errorf("its group: %+v", g)
	}
}

func TestAStalledPartitionNamesItsOffsetAndTheBlockingKey(t *testing.T) {
	w := newWorld(t, 1, quick())
	w.publish(0, 5, 0)
	w.mark(0, 2)
	w.join()
	w.park(0, 1, "account-7\x1b[31m", "no such account\n")
	w.exec(`INSERT INTO waybill.parked (group_name, topic, partition, "offset", key, event_id, type, tenant, subject,
			sequence, record_time, header_names, header_values, state)
		SELECT group_name, topic, partition, 2, key, gen_random_uuid(), type, tenant, subject, 2, now(), '{}', '{}', 'waiting'
		FROM waybill.parked`)
	p := w.until("stalled", 0, func(p Partition) bool { return p.State == Stalled && p.Blocked != nil && *p.At == 2 })
	if p.At == nil || *p.At != 2 || p.Blocked == nil || p.Blocked.Keys != 1 || p.Blocked.Events != 2 || p.Blocked.Offset != 1 || p.Blocked.Attempts != 3 {
		t.Errorf("%+v", p)
	}
	if !strings.Contains(p.Why, "account-7?[31m") || !strings.Contains(p.Why, "no such account") {
		t.Errorf("%q", p.Why)
	}
	if v, ok := w.metric("waybill_consumer_state", map[string]string{"state": "stalled"}); !ok || v != 1 {
		t.Errorf("metric: %v %v", v, ok)
	}
	// It moves on, but the key still waits: nothing is silently stuck.
	w.mark(0, 5)
	w.until("a key that stands while its partition goes on", 0, func(p Partition) bool {
		return p.State == Stalled && *p.At == 1 && *p.Lag == 0
	})
	w.exec(`DELETE FROM waybill.parked`)
	w.until("mended", 0, func(p Partition) bool { return p.State == OK })
}

func TestBehindWithoutAMemberIsTold(t *testing.T) {
	w := newWorld(t, 1, quick())
	w.publish(0, 5, 0)
	leave := w.join()
	w.mark(0, 2)
	w.until("somebody reads", 0, func(p Partition) bool { return p.State != "" && p.State != NoMembers })
	leave()
	w.until("nobody reads", 0, func(p Partition) bool { return p.State == NoMembers })
	w.mark(0, 5)
	w.until("caught up: nobody is needed", 0, func(p Partition) bool { return p.State == OK })
}

func TestOffsetsSetBackAreARewind(t *testing.T) {
	w := newWorld(t, 1, quick())
	w.publish(0, 10, 0)
	w.mark(0, 8)
	w.join()
	w.look(0)
	w.mark(0, 3)
	p := w.look(0)
	if p.State != Rewound || !strings.Contains(p.Why, "from 8 to 3") || p.Out != nil {
		t.Errorf("%+v", p)
	}
	w.mark(0, 8)
	if p := w.look(0); p.State == Rewound {
		t.Errorf("past where it was: %+v", p)
	}
}

func TestRetentionThatOvertakesIsTold(t *testing.T) {
	w := newWorldOn(t, anyRequest(t), 1, quick())
	w.publish(0, 100, 0)
	w.mark(0, 50)
	w.join()
	w.look(0)
	cut := func(before int64) {
		var os kadm.Offsets
		os.AddOffset(w.topic, 0, before, -1)
		if _, err := w.adm.DeleteRecords(t.Context(), os); err != nil {
			t.Fatal(err)
		}
	}
	cut(30)
	p := w.until("about to overtake", 0, func(p Partition) bool { return p.State == Retention })
	if p.Lost != 0 || !strings.Contains(p.Why, "reaches its place") || *p.At != 50 {
		t.Errorf("%+v", p)
	}
	cut(60)
	p = w.until("overtaken", 0, func(p Partition) bool { return p.Lost > 0 })
	if p.Lost != 10 || p.State != Retention || *p.Lag != 40 || *p.At != 60 {
		t.Errorf("%+v", p)
	}
}

func TestATopicMadeAnewIsARewindOfOurGroups(t *testing.T) {
	w := newWorld(t, 1, quick())
	w.publish(0, 10, 0)
	w.mark(0, 7)
	w.join()
	w.look(0)
	if _, err := w.adm.DeleteTopics(t.Context(), w.topic); err != nil {
		t.Fatal(err)
	}
	w.until("the topic is gone", 0, func(p Partition) bool { return p.State == Unknown && p.Lag == nil })
	w.declare(1)
	w.cl = w.engine.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner())) // the other knows the old topic's id
	w.publish(0, 4, 0)
	p := w.until("it is another", 0, func(p Partition) bool { return p.Lag != nil })
	if p.State != Rewound || *p.Lag != 4 || !strings.Contains(p.Why, "made anew") {
		t.Errorf("%+v", p)
	}
}

func TestACommitPastTheEndIsUnknownNotZero(t *testing.T) {
	w := newWorld(t, 1, quick())
	w.publish(0, 3, 0)
	w.commit(0, 99)
	if p := w.look(0); p.Lag != nil || p.State != Unknown || !strings.Contains(p.Why, "made anew or cut back") {
		t.Errorf("%+v", p)
	}
}

func TestWhileTheBrokerIsAwayAllIsUnknownAndNothingZero(t *testing.T) {
	cfg := quick()
	cfg.Timeout = 500 * time.Millisecond
	w := newWorld(t, 1, cfg)
	w.publish(0, 5, 0)
	w.mark(0, 2)
	w.until("known", 0, func(p Partition) bool { return p.Lag != nil })
	w.line.set(true)
	p := w.until("unknown", 0, func(p Partition) bool { return p.State == Unknown })
	if p.Lag != nil || p.Seconds != nil || p.End != nil || p.In != nil || p.Why == "" {
		t.Errorf("%+v", p)
	}
	for _, name := range []string{"waybill_consumer_lag_events", "waybill_consumer_lag_seconds", "waybill_consumer_in_events_per_second"} {
		if v, ok := w.metric(name, nil); ok {
			t.Errorf("%s is %v", name, v)
		}
	}
	if _, ok := w.metric("waybill_consumer_state", map[string]string{"state": "unknown"}); !ok {
		t.Error("the state is not told")
	}
	w.line.set(false)
	if p := w.until("back", 0, func(p Partition) bool { return p.Lag != nil }); *p.Lag != 3 {
		t.Errorf("%+v", p)
	}
}

func TestWhileTheDatabaseIsAwayOnlyItsGroupsAreUnknown(t *testing.T) {
	w := newWorld(t, 1, quick())
	w.publish(0, 5, 0)
	w.commit(0, 1)
	w.mark(0, 2)
	w.look(0)
	w.db.Close()
	p := w.look(0)
	if p.State != Unknown || p.Lag != nil || !strings.Contains(p.Why, "database") {
		t.Errorf("%+v", p)
	}
	if s := w.m.Latest(); !strings.Contains(s.Error, "database") {
		t.Errorf("%q", s.Error)
	}
}

func TestLateThenFiringThenWell(t *testing.T) {
	cfg := quick()
	cfg.StallAfter = time.Hour // it stands still here for another reason
	w := newWorld(t, 1, cfg)
	w.publish(0, 5, time.Hour)
	w.publish(0, 5, 0)
	w.mark(0, 2)
	w.join()
	if p := w.look(0); p.State != Warning {
		t.Errorf("late: %+v", p)
	}
	p := w.until("late for long, and more comes than goes", 0, func(p Partition) bool {
		w.publish(0, 5, 0)
		return p.State == Firing
	})
	if p.Drain != nil || *p.In <= *p.Out {
		t.Errorf("%+v", p)
	}
	w.mark(0, 5)
	w.until("no longer late", 0, func(p Partition) bool { return p.State == OK })
}

func TestAStallIsSeenAtTheFirstLookWhereTheDatabaseKnows(t *testing.T) {
	cfg := quick()
	cfg.StallAfter = time.Minute
	w := newWorld(t, 2, cfg)
	w.join()
	w.publish(0, 5, time.Hour)
	w.publish(1, 5, 0)
	w.mark(0, 2)
	w.mark(1, 2)
	w.exec(`UPDATE waybill.watermark SET updated_at = now() - interval '10 minutes'`)
	if p := w.look(0); p.State != Stalled || !strings.Contains(p.Why, "for 10m") {
		t.Errorf("%+v", p)
	}
	// What came a moment ago cannot have been waiting for ten minutes.
	if p := w.look(1); p.State != OK {
		t.Errorf("%+v", p)
	}
}
