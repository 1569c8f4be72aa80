package queue

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/pg/local"
	"github.com/waybillhq/waybill/pg/pgtest"
)

var workerArgs = flag.String("worker", "", "be a worker: DSN|name, for TestWorkersShareAndAKilledOneLosesAndRepeatsNothing alone")

const atWork = "at work"

// effect is a handler that notes who did what, in the transaction.
func effect(who string) Handler {
	return func(ctx context.Context, tx pgx.Tx, m Delivery) error {
		_, err := tx.Exec(ctx, `INSERT INTO effect (who, what) VALUES ($1, $2)`, who, string(m.Body))
		return err
	}
}

var quickly = WorkerConfig{Workers: 3, Logger: quiet, Drain: 5 * time.Second, Retry: func(int) time.Duration { return time.Millisecond }}

// TestWorker is a process to be killed.
func TestWorker(t *testing.T) {
	if *workerArgs == "" {
		t.Skip("a part of TestWorkersShareAndAKilledOneLosesAndRepeatsNothing")
	}
	dsn, who, _ := strings.Cut(*workerArgs, "|")
	db := openPool(t, dsn)
	ctx, stop := context.WithCancel(t.Context())
	go func() { // the parent closes our input when it is done, or dead
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	handle := effect(who)
	fmt.Println(atWork)
	err := Work(ctx, New(db, Config{Name: "mail"}), func(ctx context.Context, tx pgx.Tx, m Delivery) error {
		if err := handle(ctx, tx, m); err != nil {
			return err
		}
		if !pause(ctx, 5*time.Millisecond) { // work takes its time
			return ctx.Err()
		}
		return nil
	}, quickly)
	if err != nil {
		t.Fatal(err)
	}
}

type process struct {
	cmd *exec.Cmd
	in  io.Closer
}

func (w *world) spawn(who string) *process {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), os.Args[0], "-test.run=^TestWorker$", "-worker="+w.dsn+"|"+who)
	in, err := cmd.StdinPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if lines.Text() == atWork {
			break
		}
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	return &process{cmd, in}
}

func TestWorkersShareAndAKilledOneLosesAndRepeatsNothing(t *testing.T) {
	t.Parallel() // it waits more than it works
	w := newWorld(t)
	w.exec(`CREATE TABLE effect (who text, what text)`)
	q := w.queue("mail", Settings{Lease: time.Second})
	var workers []*process
	for _, who := range []string{"a", "b", "c"} {
		workers = append(workers, w.spawn(who))
	}
	const all = 1500
	w.send(q, numbered(MaxBatch)...)
	more := numbered(all)[MaxBatch:]
	w.send(q, more...)
	w.until("half is done", func() bool { return w.number(`SELECT count(*) FROM effect`) > all/2 })
	// Each has three of nine at a time; what the processors make of that on a busy
	// machine is not ours, but nobody is left without.
	for _, who := range []string{"a", "b", "c"} {
		if n := w.number(`SELECT count(*) FROM effect WHERE who = $1`, who); n == 0 {
			t.Errorf("%s had none of %d", who, all/2)
		}
	}
	_ = workers[0].cmd.Process.Kill()
	_ = workers[0].cmd.Wait()
	w.until("all is done", func() bool {
		s := w.stats(q)
		return s.Ready+s.InFlight+s.Delayed == 0
	})
	if n, different := w.number(`SELECT count(*) FROM effect`), w.number(`SELECT count(DISTINCT what) FROM effect`); n != all || different != all {
		t.Errorf("%d effects of %d messages, sent %d", n, different, all)
	}
	for _, p := range workers[1:] {
		_ = p.in.Close()
		if err := p.cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
}

// run works in the background; the stop waits for the end.
func (w *world) run(q *Queue, h Handler, cfg WorkerConfig) (stop func()) {
	ctx, cancel := contextOf(w.t)
	done := make(chan error, 1)
	go func() { done <- Work(ctx, q, h, cfg) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				w.t.Error(err)
			}
		})
	}
	w.t.Cleanup(stop)
	return stop
}

func TestAMessageThatFailsLeavesNoEffectAndIsDeadInTheEnd(t *testing.T) {
	w := newWorld(t)
	w.exec(`CREATE TABLE effect (who text, what text)`)
	q := w.queue("mail", Settings{MaxDeliveries: 3})
	w.send(q, text("good", "bad", "panic", "good")...)
	keep := effect("w")
	w.run(q, func(ctx context.Context, tx pgx.Tx, m Delivery) error {
		if err := keep(ctx, tx, m); err != nil {
			return err
		}
		switch string(m.Body) {
		case "bad":
			return errors.New("never works")
		case "panic":
			panic("never works")
		}
		return nil
	}, quickly)
	w.until("two are dead and two done", func() bool { s := w.stats(q); return s.Dead == 2 && s.Ready+s.InFlight+s.Delayed == 0 })
	if n := w.number(`SELECT count(*) FROM effect`); n != 2 {
		t.Errorf("%d effects", n)
	}
	if n := w.number(`SELECT count(*) FROM waybill.queue_dead WHERE deliveries = 3 AND error LIKE '%never works%'`); n != 2 {
		t.Errorf("%d tell why", n)
	}
}

func TestALongHandlerKeepsItsLease(t *testing.T) {
	t.Parallel() // it waits more than it works
	w := newWorld(t)
	w.exec(`CREATE TABLE effect (who text, what text)`)
	q := w.queue("mail", Settings{Lease: time.Second})
	w.send(q, text("long")...) // longer than its lease: without being kept alive none of its deliveries ends well
	keep := effect("w")
	w.run(q, func(ctx context.Context, tx pgx.Tx, m Delivery) error {
		if !pause(ctx, 2500*time.Millisecond) {
			return ctx.Err()
		}
		return keep(ctx, tx, m)
	}, quickly)
	w.until("it is done", func() bool { return w.number(`SELECT count(*) FROM effect`) == 1 })
}

func TestAHandlerThatLosesItsLeaseIsStoppedAndUndone(t *testing.T) {
	t.Parallel() // it waits more than it works
	w := newWorld(t)
	w.exec(`CREATE TABLE effect (who text, what text)`)
	q := w.queue("mail", Settings{Lease: time.Second})
	w.send(q, text("x")...)
	keep := effect("w")
	started, ended := make(chan Delivery, 1), make(chan struct{}, 1)
	stop := w.run(q, func(ctx context.Context, tx pgx.Tx, m Delivery) error {
		if m.Deliveries > 1 {
			return keep(ctx, tx, m)
		}
		err := keep(ctx, tx, m)
		started <- m
		<-ctx.Done() // the lease is taken away meanwhile
		ended <- struct{}{}
		return err
	}, quickly)
	m := <-started
	w.until("the handler is stopped", func() bool {
		w.lapse(m) // again: the worker may have extended the lease before anybody looked
		select {
		case <-ended:
			return true
		default:
			return false
		}
	})
	w.until("the second delivery is done", func() bool { s := w.stats(q); return s.Ready+s.InFlight == 0 })
	stop()
	if n := w.number(`SELECT count(*) FROM effect`); n != 1 {
		t.Errorf("%d effects", n)
	}
}

func TestAWorkerThatStopsFinishesWhatItHas(t *testing.T) {
	w := newWorld(t)
	w.exec(`CREATE TABLE effect (who text, what text)`)
	q := w.queue("mail", Settings{})
	w.send(q, numbered(20)...)
	keep, started := effect("w"), make(chan struct{}, 20)
	stop := w.run(q, func(ctx context.Context, tx pgx.Tx, m Delivery) error {
		started <- struct{}{}
		if !pause(ctx, 100*time.Millisecond) {
			return ctx.Err()
		}
		return keep(ctx, tx, m)
	}, quickly)
	<-started
	stop()
	s := w.stats(q)
	if done := w.number(`SELECT count(*) FROM effect`); done == 0 || s.InFlight != 0 || s.Redelivered != 0 || s.Ready+done != 20 {
		t.Errorf("%d done, %+v", done, s)
	}
}

func TestTypedHandlersGetTheirType(t *testing.T) {
	type mail struct{ To string }
	w := newWorld(t)
	q := w.queue("mail", Settings{MaxDeliveries: 1})
	m, err := NewJSON(mail{"ana"})
	if err != nil {
		t.Fatal(err)
	}
	w.send(q, m, Message{Body: []byte("no JSON")})
	got := make(chan string, 1)
	w.run(q, JSON(func(_ context.Context, _ pgx.Tx, m Of[mail]) error {
		got <- m.Data.To
		return nil
	}), quickly)
	if to := <-got; to != "ana" {
		t.Error(to)
	}
	w.until("the other is dead", func() bool { return w.stats(q).Dead == 1 })
}

func TestADatabaseThatCrashesLosesAndRepeatsNothing(t *testing.T) {
	t.Parallel() // it waits more than it works
	cfg := local.Config{Dir: pgtest.Dir(t)}
	server, err := local.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Port = server.Port()
	w := worldOn(t, server.DSN())
	w.exec(`CREATE TABLE effect (who text, what text)`)
	q := w.queue("mail", Settings{Lease: time.Second})
	w.send(q, numbered(400)...)
	keep := effect("w")
	work := New(openPool(t, server.DSN()), Config{Name: "mail"})
	w.run(work, func(ctx context.Context, tx pgx.Tx, m Delivery) error {
		if !pause(ctx, 3*time.Millisecond) {
			return ctx.Err()
		}
		return keep(ctx, tx, m)
	}, quickly)
	w.until("some are done", func() bool { return w.number(`SELECT count(*) FROM effect`) > 100 })
	pgtest.Crash(t, server)
	if server, err = local.Start(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop(context.Background()) })
	w.db = openPool(t, server.DSN())
	w.until("all are done", func() bool {
		all, err := ReadStats(t.Context(), w.db, "")
		return err == nil && all[0].Ready+all[0].InFlight+all[0].Delayed == 0
	})
	if n, different := w.number(`SELECT count(*) FROM effect`), w.number(`SELECT count(DISTINCT what) FROM effect`); n != 400 || different != 400 {
		t.Errorf("%d effects of %d messages", n, different)
	}
}

// A transaction that nobody ends keeps vacuum from its work. The queue goes on,
// also for what comes back.
func TestATransactionHeldOpenElsewhereStopsNothing(t *testing.T) {
	t.Parallel() // it waits more than it works
	w := newWorld(t)
	q := w.queue("mail", Settings{})
	held, err := w.db.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := held.Exec(t.Context(), `SELECT pg_current_xact_id()`); err != nil {
		t.Fatal(err)
	}
	w.send(q, text("comes back")...)
	back := w.one(q)
	for range 20 {
		w.send(q, numbered(500)...)
		w.ack(q, w.receive(q, 500)...)
	}
	w.lapse(back)
	w.send(q, Message{Body: []byte("grouped"), Group: "g"})
	var got []Delivery
	w.until("all came", func() bool { got = append(got, w.receive(q, 10)...); return len(got) == 2 })
}
