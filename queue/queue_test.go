package queue

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/pg"
)

func TestAMessageIsGoneWhenItIsAcknowledged(t *testing.T) {
	w := newWorld(t)
	q := w.queue("mail", Settings{})
	sent := w.send(q, Message{
		Body: []byte("hello"), ContentType: "text/plain", Headers: map[string]string{"lang": "pt", "quote": `"`}, Priority: 3, Group: "g", DedupeID: "d",
	})
	m := w.one(q)
	if m.ID != sent[0].ID || string(m.Body) != "hello" || m.ContentType != "text/plain" || m.Headers["lang"] != "pt" || m.Headers["quote"] != `"` ||
		m.Priority != 3 || m.Group != "g" || m.DedupeID != "d" || m.Deliveries != 1 || m.SentAt.IsZero() || time.Until(m.LeaseUntil) < 20*time.Second {
		t.Errorf("%+v", m)
	}
	if got := w.receive(q, 10); len(got) != 0 {
		t.Errorf("delivered twice: %v", got)
	}
	w.ack(q, m)
	if err := q.Ack(t.Context(), w.db, m.Receipt); !errors.Is(err, ErrReceipt) {
		t.Errorf("acknowledged again: %v", err)
	}
	if s := w.stats(q); s != (Stats{Name: "mail", MaxLength: 1_000_000}) {
		t.Errorf("left: %+v", s)
	}
}

func TestSentMessagesShareTheTransactionsFate(t *testing.T) {
	w := newWorld(t)
	q := w.queue("mail", Settings{})
	undone := errors.New("undone")
	for _, end := range []error{undone, nil} {
		err := pgx.BeginFunc(t.Context(), w.db, func(tx pgx.Tx) error {
			if _, err := q.Send(t.Context(), tx, Message{Body: []byte("x"), DedupeID: "once"}); err != nil {
				return err
			}
			if got := w.receive(q, 1); len(got) != 0 {
				t.Error("delivered before its commit")
			}
			return end
		})
		if !errors.Is(err, end) {
			t.Fatal(err)
		}
	}
	w.one(q)
}

func TestOrderIsByPriorityThenSending(t *testing.T) {
	w := newWorld(t)
	q := w.queue("mail", Settings{})
	w.send(q, text("c1", "c2")...)
	w.send(q, Message{Body: []byte("a1"), Priority: 9}, Message{Body: []byte("b1"), Priority: 5}, Message{Body: []byte("a2"), Priority: 9})
	if got := bodies(w.receive(q, 4)) + " " + bodies(w.receive(q, 4)); got != "a1 a2 b1 c1 c2" {
		t.Error(got)
	}
}

func TestALeaseThatEndsRedeliversAndTheOldReceiptIsRefused(t *testing.T) {
	w := newWorld(t)
	q, other := w.queue("mail", Settings{}), New(w.db, Config{Name: "mail"})
	w.send(q, text("x")...)
	first := w.one(q)
	w.lapse(first)
	again := w.one(other)
	if again.ID != first.ID || again.Deliveries != 2 || again.Receipt == first.Receipt {
		t.Errorf("%+v", again)
	}
	for name, err := range map[string]error{
		"ack":    q.Ack(t.Context(), w.db, first.Receipt),
		"nack":   q.Nack(t.Context(), w.db, 0, "", first.Receipt),
		"extend": q.Extend(t.Context(), w.db, time.Minute, first.Receipt),
	} {
		var refused *ReceiptError
		if !errors.As(err, &refused) || len(refused.Receipts) != 1 || refused.Receipts[0] != first.Receipt {
			t.Errorf("%s with the old receipt: %v", name, err)
		}
	}
	w.ack(q, again)
}

func TestOfSeveralReceiptsTheGoodOnesCount(t *testing.T) {
	w := newWorld(t)
	q := w.queue("mail", Settings{})
	w.send(q, text("a", "b", "c")...)
	got := w.receive(q, 3)
	w.ack(q, got[1])
	err := q.Ack(t.Context(), w.db, receipts(got)...)
	var refused *ReceiptError
	if !errors.As(err, &refused) || len(refused.Receipts) != 1 || refused.Receipts[0] != got[1].Receipt {
		t.Errorf("%v", err)
	}
	if s := w.stats(q); s.InFlight != 0 {
		t.Errorf("%+v", s)
	}
	if err := q.Ack(t.Context(), w.db, "nonsense"); !errors.Is(err, ErrInvalid) {
		t.Error(err)
	}
}

func TestALeaseThatIsExtendedGoesOn(t *testing.T) {
	w := newWorld(t)
	q := w.queue("mail", Settings{Lease: time.Second})
	w.send(q, text("x")...)
	m := w.one(q)
	if err := q.Extend(t.Context(), w.db, time.Hour, m.Receipt); err != nil {
		t.Fatal(err)
	}
	if n := w.number(`SELECT count(*) FROM waybill.queue_messages WHERE due_at > now() + interval '50 minutes'`); n != 1 {
		t.Error("not extended")
	}
}

func TestDelayedMessagesComeWhenTheyAreDue(t *testing.T) {
	w := newWorld(t)
	q := w.queue("mail", Settings{})
	w.send(q, Message{Body: []byte("late"), Delay: time.Hour}, Message{Body: []byte("soon"), Delay: time.Millisecond}, Message{Body: []byte("now")})
	if got := w.one(q); string(got.Body) != "now" {
		t.Errorf("%s", got.Body)
	}
	if got := w.one(q); string(got.Body) != "soon" {
		t.Errorf("%s", got.Body)
	}
	if got := w.receive(q, 1); len(got) != 0 || w.stats(q).Delayed != 1 {
		t.Errorf("%v", got)
	}
	w.exec(`UPDATE waybill.queue_messages SET due_at = now() - interval '1 day' WHERE state = 'delayed'`)
	w.one(q)
}

func TestAMessageGivenBackComesAfterItsDelay(t *testing.T) {
	w := newWorld(t)
	q := w.queue("mail", Settings{})
	w.send(q, text("x")...)
	w.nack(q, 0, w.one(q))
	m := w.one(q)
	if m.Deliveries != 2 {
		t.Errorf("%+v", m)
	}
	w.nack(q, time.Hour, m)
	if s := w.stats(q); s.Delayed != 1 || s.Ready != 0 || s.Redelivered != 1 {
		t.Errorf("%+v", s)
	}
}

func TestAMessageNobodyWorkedOnIsNotCounted(t *testing.T) {
	w := newWorld(t)
	q := w.queue("mail", Settings{MaxDeliveries: 1})
	w.send(q, text("x")...)
	for range 3 {
		m := w.one(q)
		if m.Deliveries != 1 {
			t.Errorf("%+v", m)
		}
		if err := q.Release(t.Context(), w.db, m.Receipt); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAfterItsLastDeliveryAMessageIsDead(t *testing.T) {
	w := newWorld(t)
	q := w.queue("mail", Settings{MaxDeliveries: 2})
	w.send(q, Message{Body: []byte("given back"), Headers: map[string]string{"a": "b"}}, Message{Body: []byte("left alone")})
	for range 2 {
		var got []Delivery
		w.until("both are there", func() bool { got = append(got, w.receive(q, 2)...); return len(got) == 2 })
		slices.SortFunc(got, func(a, b Delivery) int { return strings.Compare(string(a.Body), string(b.Body)) })
		w.nack(q, 0, got[0])
		w.lapse(got[1])
	}
	w.until("both are dead", func() bool { return len(w.receive(q, 1)) == 0 && w.stats(q).Dead == 2 })
	dead, err := q.Dead(t.Context(), uuid.Nil, 10)
	if err != nil || len(dead) != 2 || dead[0].Error != "as the test wants it" || dead[1].Error != leaseEnded ||
		dead[0].Deliveries != 2 || dead[0].Headers["a"] != "b" || string(dead[1].Body) != "left alone" {
		t.Fatalf("%+v, %v", dead, err)
	}
	if page, err := q.Dead(t.Context(), dead[0].ID, 10); err != nil || len(page) != 1 || page[0].ID != dead[1].ID {
		t.Errorf("%+v, %v", page, err)
	}
	if n, err := q.Redrive(t.Context(), dead[0].ID); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	m := w.one(q)
	if m.ID != dead[0].ID || m.Deliveries != 1 || m.Headers["a"] != "b" || !m.SentAt.Equal(dead[0].SentAt) {
		t.Errorf("%+v", m)
	}
	if n, err := q.Drop(t.Context()); err != nil || n != 1 || w.stats(q).Dead != 0 {
		t.Error(n, err)
	}
}

func TestDeadMessagesGoToTheQueueForThem(t *testing.T) {
	w := newWorld(t)
	bad := w.queue("bad-mail", Settings{})
	q := w.queue("mail", Settings{MaxDeliveries: 1, DeadLetter: "bad-mail"})
	w.send(q, Message{Body: []byte("x"), Group: "g"})
	w.nack(q, time.Hour, w.one(q))
	m := w.one(bad)
	if string(m.Body) != "x" || m.Group != "g" || m.Headers["dead-letter-queue"] != "mail" || m.Headers["dead-letter-deliveries"] != "1" || m.Deliveries != 1 {
		t.Errorf("%+v", m)
	}
	if s := w.stats(q); s.Dead+s.Delayed+s.Ready != 0 {
		t.Errorf("%+v", s)
	}
}

func TestADedupeIDIsTakenOnceInItsWindow(t *testing.T) {
	w := newWorld(t)
	q, other := w.queue("mail", Settings{}), w.queue("post", Settings{})
	x := Message{Body: []byte("x"), DedupeID: "d"}
	first := w.send(q, x)
	again := w.send(q, x, Message{Body: []byte("y"), DedupeID: "e"}, x, Message{Body: []byte("z"), DedupeID: "e"})
	if !again[0].Duplicate || !again[2].Duplicate || again[0].ID != first[0].ID || again[2].ID != first[0].ID {
		t.Errorf("%+v", again)
	}
	if again[1].Duplicate || !again[3].Duplicate || again[3].ID != again[1].ID {
		t.Errorf("%+v", again)
	}
	if got := w.send(other, x); got[0].Duplicate {
		t.Error("another queue's id")
	}
	w.ack(q, w.receive(q, 10)...)
	if got := w.send(q, x); !got[0].Duplicate {
		t.Error("a message that is done is forgotten within the window")
	}
	w.exec(`UPDATE waybill.queue_dedupe SET expires_at = now() WHERE dedupe_id = 'd'`)
	if got := w.send(q, x); got[0].Duplicate || got[0].ID == first[0].ID {
		t.Errorf("%+v after the window", got)
	}
}

func TestWhatWaitsTooLongExpires(t *testing.T) {
	w := newWorld(t)
	q := w.queue("mail", Settings{TTL: time.Hour})
	w.send(q, Message{Body: []byte("short"), TTL: time.Millisecond}, Message{Body: []byte("long")},
		Message{Body: []byte("first"), TTL: time.Millisecond, Group: "g"}, Message{Body: []byte("second"), Group: "g"})
	w.until("the short ones are over", func() bool {
		return w.number(`SELECT count(*) FROM waybill.queue_messages WHERE expires_at <= now()`) == 2
	})
	if got := w.receive(q, 1); bodies(got) != "long" {
		t.Errorf("%q", bodies(got))
	}
	if got := w.one(q); string(got.Body) != "second" {
		t.Errorf("%s", got.Body)
	}
	w.exec(`UPDATE waybill.queue_messages SET expires_at = now()`)
	if err := NewKeeper(w.db, KeeperConfig{}).round(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := w.stats(q); s.InFlight != 2 {
		t.Errorf("%+v: what is with a worker is the worker's", s)
	}
}

func TestAFullQueueRefuses(t *testing.T) {
	w := newWorld(t)
	q := w.queue("mail", Settings{MaxLength: 10})
	w.send(q, numbered(8)...)
	_, err := q.Send(t.Context(), w.db, numbered(3)...)
	var full *FullError
	if !errors.Is(err, ErrFull) || !errors.As(err, &full) || full.MaxLength != 10 || full.RetryAfter <= 0 {
		t.Fatalf("%v", err)
	}
	if s := w.stats(q); s.Ready != 8 {
		t.Errorf("%+v", s)
	}
	w.ack(q, w.receive(q, 5)...)
	w.until("there is room again", func() bool {
		_, err := q.Send(t.Context(), w.db, numbered(3)...)
		return err == nil
	})
}

func TestPurgeTakesWhatWaitsAndWhatIsAtWork(t *testing.T) {
	w := newWorld(t)
	q, other := w.queue("mail", Settings{}), w.queue("post", Settings{})
	w.send(q, numbered(5)...)
	w.send(other, numbered(2)...)
	m := w.one(q)
	if n, err := q.Purge(t.Context()); err != nil || n != 5 {
		t.Errorf("%d, %v", n, err)
	}
	if err := q.Ack(t.Context(), w.db, m.Receipt); !errors.Is(err, ErrReceipt) {
		t.Error(err)
	}
	if s := w.stats(other); s.Ready != 2 {
		t.Errorf("%+v", s)
	}
}

func TestNoTenantReachesAnothersMessages(t *testing.T) {
	w := newWorld(t)
	ours, theirs := w.tenantQueue("ours", "mail", Settings{MaxDeliveries: 1}), w.tenantQueue("theirs", "mail", Settings{})
	w.send(ours, Message{Body: []byte("secret"), DedupeID: "d"}, Message{Body: []byte("dying")})
	if got := w.send(theirs, Message{DedupeID: "d"}); got[0].Duplicate {
		t.Error("learned of another's dedupe id")
	}
	if got := w.receive(theirs, 10); len(got) != 1 || len(got[0].Body) != 0 {
		t.Errorf("%v", got)
	}
	got := w.receive(ours, 2)
	for name, err := range map[string]error{
		"ack":    theirs.Ack(t.Context(), w.db, got[0].Receipt),
		"nack":   theirs.Nack(t.Context(), w.db, 0, "", got[0].Receipt),
		"extend": theirs.Extend(t.Context(), w.db, time.Minute, got[0].Receipt),
	} {
		if !errors.Is(err, ErrReceipt) {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.nack(ours, 0, got[1])
	if n, err := theirs.Redrive(t.Context(), got[1].ID); err != nil || n != 0 {
		t.Error(n, err)
	}
	if n, err := theirs.Drop(t.Context()); err != nil || n != 0 {
		t.Error(n, err)
	}
	if dead, err := theirs.Dead(t.Context(), uuid.Nil, 10); err != nil || len(dead) != 0 {
		t.Error(dead, err)
	}
	if _, err := theirs.Purge(t.Context()); err != nil {
		t.Error(err)
	}
	if err := Declare(t.Context(), w.db, "theirs", "other", Settings{DeadLetter: "mail"}); err != nil {
		t.Error(err)
	}
	if err := Declare(t.Context(), w.db, "", "other", Settings{DeadLetter: "mail"}); !errors.Is(err, ErrUnknown) {
		t.Errorf("a dead-letter queue of another tenant: %v", err)
	}
	all, err := ReadStats(t.Context(), w.db, "ours")
	if err != nil || len(all) != 1 || all[0].InFlight != 1 || all[0].Dead != 1 {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestWhatCannotBeMeantIsRefusedWithWhy(t *testing.T) {
	w := newWorld(t)
	q := w.queue("mail", Settings{})
	for name, m := range map[string]Message{
		"body":     {Body: make([]byte, MaxBody+1)},
		"priority": {Priority: 10},
		"delay":    {Delay: 31 * day},
		"ttl":      {TTL: -1},
		"group":    {Group: strings.Repeat("x", 256)},
		"dedupe":   {DedupeID: "a\x00"},
		"headers":  {Headers: map[string]string{"a": strings.Repeat("x", MaxHeaders)}},
		"header":   {Headers: map[string]string{"a": "\xff"}},
	} {
		if _, err := q.Send(t.Context(), w.db, m); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, s := range []Settings{{Lease: time.Millisecond}, {MaxDeliveries: -1}, {MaxLength: -1}, {TTL: -1}, {DeadLetter: "bad"}} {
		if err := Declare(t.Context(), w.db, "", "bad", s); !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: %v", s, err)
		}
	}
	if err := Declare(t.Context(), w.db, "", "Bad Name", Settings{}); !errors.Is(err, ErrInvalid) {
		t.Error(err)
	}
	none := New(w.db, Config{Name: "none"})
	_, sendErr := none.Send(t.Context(), w.db, Message{})
	_, receiveErr := none.Receive(t.Context(), ReceiveOptions{})
	_, waitErr := none.Receive(t.Context(), ReceiveOptions{Wait: time.Hour})
	for _, err := range []error{sendErr, receiveErr, waitErr} {
		if !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), "waybill queue create") {
			t.Error(err)
		}
	}
}

func TestAnAcknowledgementThatIsUndoneDidNotHappen(t *testing.T) {
	w := newWorld(t)
	q := w.queue("mail", Settings{})
	w.send(q, Message{Body: []byte("a"), Group: "g"}, Message{Body: []byte("b"), Group: "g"})
	m := w.one(q)
	undone := errors.New("undone")
	if err := pgx.BeginFunc(t.Context(), w.db, func(tx pgx.Tx) error {
		if err := q.Ack(t.Context(), tx, m.Receipt); err != nil {
			return err
		}
		return undone
	}); !errors.Is(err, undone) {
		t.Fatal(err)
	}
	if got := w.receive(q, 1); len(got) != 0 {
		t.Errorf("%v: the group moved on", got)
	}
	w.ack(q, m)
	w.one(q)
}

func TestWhoWaitsHasAMessageAtOnce(t *testing.T) {
	w := newWorld(t)
	s, other := NewSignals(w.db, quiet), NewSignals(openPool(t, w.dsn), quiet)
	ctx, stop := contextOf(t)
	for _, s := range []*Signals{s, other} {
		go func() { _ = s.Run(ctx) }()
	}
	defer stop()
	w.queue("mail", Settings{})
	from, to := New(w.db, Config{Name: "mail", Signals: s}), New(w.db, Config{Name: "mail", Signals: other})
	got := make(chan []Delivery)
	go func() {
		d, _ := to.Receive(t.Context(), ReceiveOptions{Max: 5, Wait: time.Minute})
		got <- d
	}()
	w.send(from, text("x")...)
	if d := <-got; bodies(d) != "x" {
		t.Errorf("%v", d)
	}
	if d, err := to.Receive(t.Context(), ReceiveOptions{Wait: time.Millisecond}); err != nil || d != nil {
		t.Errorf("%v, %v", d, err)
	}
}

// Each sender has a connection, and none is left to ask for the queue's length
// with.
func TestSendersWhoTakeAllConnectionsDoNotWaitForEachOther(t *testing.T) {
	w := newWorld(t)
	w.queue("mail", Settings{})
	db, err := pg.Open(t.Context(), w.dsn+"&pool_max_conns=2", pg.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	q := New(db, Config{Name: "mail"})
	var begun, all sync.WaitGroup
	begun.Add(2)
	for range 2 {
		all.Go(func() {
			err := pgx.BeginFunc(t.Context(), db, func(tx pgx.Tx) error {
				begun.Done()
				begun.Wait()
				_, err := q.Send(t.Context(), tx, Message{})
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}
