package consumer

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/incident"
)

// soon gives up after three tries in place, however long they take, and two
// parked ones.
func soon(s *setup) { s.cfg.Retry.Within, s.cfg.Retry.ParkAttempts = time.Minute, 2 }

func (w *world) deadKeys(f DeadFilter) []DeadKey {
	w.t.Helper()
	f.Group = w.group
	keys, err := DeadKeys(w.t.Context(), w.db, f, 10_000)
	if err != nil {
		w.t.Fatal(err)
	}
	return keys
}

// untilDead waits for n dead keys whose copies are written.
func (w *world) untilDead(n int) []DeadKey {
	w.t.Helper()
	var keys []DeadKey
	w.until(fmt.Sprintf("%d keys are dead and copied", n), func() bool {
		keys = w.deadKeys(DeadFilter{})
		return len(keys) == n && !slices.ContainsFunc(keys, func(k DeadKey) bool { return k.CopiedAt == nil })
	})
	return keys
}

// copies reads n records of the group's dead letter topic.
func (w *world) copies(n int) []*kgo.Record {
	w.t.Helper()
	cl := w.engine.Client(w.t, kgo.ConsumeTopics(DeadTopic(w.contract.Topic, w.group)), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*time.Minute)
	defer cancel()
	var out []*kgo.Record
	for len(out) < n {
		f := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			w.t.Fatalf("%d copies, want %d", len(out), n)
		}
		out = append(out, f.Records()...)
	}
	return out
}

func headerOf(r *kgo.Record, name string) string {
	for _, h := range r.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}

func (w *world) effects(key string) int64 {
	w.t.Helper()
	return w.number(`SELECT count(*) FROM effect WHERE key = $1`, key)
}

func (w *world) redrive(f DeadFilter) Redriven {
	w.t.Helper()
	f.Group = w.group
	r, err := Redrive(w.t.Context(), w.db, f, Ask{By: "tester", Reason: "mended"})
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// Poison at the head, in the middle and at the end of a key's events.
func TestADeadEventHoldsItsKeyUntilItIsRedriven(t *testing.T) {
	t.Parallel()
	for _, bad := range []int64{1, 3, 5} {
		t.Run(fmt.Sprint(bad), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 1)
			tr := troubleWith(moved{"a", bad})
			w.start(tr.keep, soon)
			for range 5 {
				w.move("a", "b")
			}
			k := w.untilDead(1)[0]
			w.until("what is behind waits", func() bool { return w.deadKeys(DeadFilter{})[0].Behind == 5-bad })
			if k.Key != "a" || k.State != "dead" || k.Class != "other" || k.Failures != 5 || k.Tenant != "tenant-of-a" || k.First == nil {
				t.Errorf("%+v", k)
			}
			if w.effects("a") != bad-1 {
				t.Errorf("%d effects of the key, want %d", w.effects("a"), bad-1)
			}
			w.until("the other key flows", func() bool { return w.effects("b") == 5 })
			tr.mend()
			w.move("a")
			if r := w.redrive(DeadFilter{Event: k.EventID}); r.Keys != 1 || r.More {
				t.Errorf("%+v", r)
			}
			w.settled()
			w.move("a")
			w.settled()
		})
	}
}

func TestADeadEventIsCopiedOnceWithItsBytes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	tr := troubleWith(moved{"a", 1})
	rec := w.record("a")
	w.publish(rec)
	w.start(tr.keep, soon)
	k := w.untilDead(1)[0]
	c := w.copies(1)[0]
	if !slices.Equal(c.Value, rec.Value) || !slices.Equal(c.Key, rec.Key) || headerOf(c, event.HeaderID) != k.EventID {
		t.Errorf("the copy is another: %+v", c)
	}
	for i, h := range rec.Headers {
		if c.Headers[i].Key != h.Key || !slices.Equal(c.Headers[i].Value, h.Value) {
			t.Errorf("header %d is %s, want %s", i, c.Headers[i].Key, h.Key)
		}
	}
	for name, want := range map[string]string{
		HeaderDeadGroup: w.group, HeaderDeadSource: w.contract.Topic, HeaderDeadPartition: "0", HeaderDeadOffset: "0",
		HeaderDeadType: w.contract.Type, HeaderDeadKey: "a", HeaderDeadClass: "other", HeaderDeadAttempts: "5",
		HeaderDeadCause: k.Cause, HeaderDeadReason: storable(errTrouble.Error()), HeaderDeadLeftOut: "",
	} {
		if got := headerOf(c, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for _, name := range []string{HeaderDeadFirstFailure, HeaderDeadLastFailure, HeaderDeadTimestamp} {
		if _, err := time.Parse(time.RFC3339Nano, headerOf(c, name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	tr2 := w.redrive(DeadFilter{})
	w.until("it died again", func() bool {
		p, err := FindRedrive(t.Context(), w.db, tr2.Run)
		return err == nil && p.DeadAgain == 1 && p.Done()
	})
	again := w.copies(2)
	if headerOf(again[0], HeaderDeadID) == headerOf(again[1], HeaderDeadID) || headerOf(again[1], HeaderDeadAttempts) == "5" {
		t.Error("a second death is not the first")
	}
}

func TestADeadLetterTopicKeepsAMonth(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	tr := troubleWith(moved{"a", 1})
	w.start(tr.keep, soon)
	w.move("a")
	w.untilDead(1)
	err := broker.Declare(t.Context(), w.producer, w.engine.Capabilities,
		broker.Topic{Name: DeadTopic(w.contract.Topic, w.group), Partitions: 1, Retention: 30 * 24 * time.Hour})
	if err != nil {
		t.Error(err)
	}
}

// What is too large for the topic of copies goes there by its place.
func TestAnEventTooLargeToCopyIsCopiedByReference(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	err := broker.Declare(t.Context(), w.producer, w.engine.Capabilities,
		broker.Topic{Name: DeadTopic(w.contract.Topic, w.group), Partitions: 1, MaxMessageBytes: 3000})
	if err != nil {
		t.Fatal(err)
	}
	value, headers := w.recordOf(moved{"value", 1}), w.recordOf(moved{"headers", 1})
	noise := make([]byte, 10_000) // which nothing compresses
	_, _ = rand.Read(noise)
	value.Value = append(value.Value, noise...)
	headers.Headers = append(headers.Headers, kgo.RecordHeader{Key: "x", Value: noise})
	w.publish(value, headers)
	w.start(func(context.Context, pgx.Tx, event.Of[moved]) error { return errors.New("no") }, soon)
	w.untilDead(2)
	left := map[string]string{}
	for _, c := range w.copies(2) {
		left[string(c.Key)] = headerOf(c, HeaderDeadLeftOut)
		if c.Value != nil || headerOf(c, HeaderDeadOffset) == "" {
			t.Errorf("%d bytes of value, offset %q", len(c.Value), headerOf(c, HeaderDeadOffset))
		}
		if has := headerOf(c, event.HeaderID) != ""; has != (string(c.Key) == "value") {
			t.Errorf("%s: it has the event's headers: %v", c.Key, has)
		}
	}
	if left["value"] != "value" || left["headers"] != "value and headers" {
		t.Errorf("%v", left)
	}
}

// A topic that takes no copy at all: that is told, and tried again later.
func TestACopyThatIsRefusedHoldsUpNoRedrive(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	err := broker.Declare(t.Context(), w.producer, w.engine.Capabilities,
		broker.Topic{Name: DeadTopic(w.contract.Topic, w.group), Partitions: 1, MaxMessageBytes: 100})
	if err != nil {
		t.Fatal(err)
	}
	b := breaks("a")
	w.start(b.keep, atOnce)
	w.move("a", "a")
	w.until("its copy is refused", func() bool {
		k := w.deadKeys(DeadFilter{})
		return len(k) == 1 && strings.Contains(k[0].CopyError, "MESSAGE_TOO_LARGE") && k[0].CopiedAt == nil
	})
	b.mended.Store(true)
	w.redrive(DeadFilter{})
	w.settled()
}

func TestWhatCannotBeReadDiesWithItsBytes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	cut, astray := w.recordOf(moved{"a", 99}), w.recordOf(moved{"b", 99})
	cut.Value = cut.Value[:1]
	for i := range astray.Headers {
		if astray.Headers[i].Key == event.HeaderTime {
			astray.Headers[i].Value = []byte("yesterday\x00")
		}
	}
	w.publish(cut, astray)
	w.start(keep, soon)
	for _, k := range w.untilDead(2) {
		if k.Class != "unreadable" {
			t.Errorf("%+v", k)
		}
	}
	for _, c := range w.copies(2) {
		if want := map[string]*kgo.Record{"a": cut, "b": astray}[string(c.Key)]; !slices.Equal(c.Value, want.Value) {
			t.Errorf("copy of %s: %x, want %x", c.Key, c.Value, want.Value)
		}
	}
}

func TestTheFirstDeathOfACauseIsAnIncident(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.start(func(_ context.Context, _ pgx.Tx, e event.Of[moved]) error {
		return fmt.Errorf("no account %q: code %d", e.Data.Account, e.Data.N+1000)
	}, soon)
	for i := range 8 {
		w.move(fmt.Sprint("k", i))
	}
	w.untilDead(8)
	seen, err := incident.List(t.Context(), w.db, time.Time{}, 100)
	if err != nil {
		t.Fatal(err)
	}
	if len(seen) != 1 || seen[0].Kind != "dead_letter" || seen[0].Count > 2 || !strings.Contains(seen[0].Text, "waybill dlq redrive --group "+w.group) {
		t.Errorf("%+v", seen)
	}
	causes, err := DeadCauses(t.Context(), w.db, DeadFilter{Group: w.group}, 10)
	if err != nil {
		t.Fatal(err)
	}
	if len(causes) != 1 || causes[0].Keys != 8 || causes[0].Tenants != 8 || causes[0].Cause != "no account …: code #" {
		t.Errorf("%+v", causes)
	}
}

func TestDeadAndParkedAreCountedForTheGroupByOneMember(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	tr := troubleWith(moved{"a", 1}, moved{"b", 1})
	w.start(tr.keep, soon, func(s *setup) { s.cfg.Metrics = w.metrics })
	w.move("a", "a", "b")
	w.untilDead(2)
	w.until("they are counted", func() bool { return w.gauge("waybill_consumer_parked_events") == 3 })
}

func TestCausesLeaveOutWhatIsParticular(t *testing.T) {
	for text, want := range map[string]string{
		`no account "12'x"`: `no account …`,
		`order 7f1c0a52-2c72-75f0-aa72-24d230e51962 unknown`:          `order # unknown`,
		`dial tcp 10.0.0.7:5432: connect: connection refused`:         `dial tcp #: connect: connection refused`,
		`ERROR: duplicate key value (SQLSTATE 23505)`:                 `ERROR: duplicate key value (SQLSTATE #)`,
		"commit  a1b2c3d4e5f60718\n failed after 1.5s":                `commit # failed after #`,
		`decode: value of schema 12 malformed: 3 bytes are left over`: `decode: value of schema # malformed: # bytes are left over`,
	} {
		got, id := causeOf(text)
		if got != want || len(id) != 8 {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	long, _ := causeOf(strings.Repeat("é", 10_000))
	if len(long) > maxCause {
		t.Errorf("%d bytes", len(long))
	}
}
