package consumer

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/event"
)

var dyingArgs = flag.String("dying", "", "be a member whose events all die: DSN|brokers|topic|group, for TestAKillBetweenDeathAndCopyLosesNoCopy alone")

// TestDyingMember is a process to be killed.
func TestDyingMember(t *testing.T) {
	if *dyingArgs == "" {
		t.Skip("a part of TestAKillBetweenDeathAndCopyLosesNoCopy")
	}
	a := strings.Split(*dyingArgs, "|")
	quiet := slog.New(slog.DiscardHandler)
	cfg := broker.Config{Brokers: strings.Split(a[1], ","), Logger: quiet}
	g := New(Deps{DB: openPool(t, a[0], nil), Decoder: plain{}, Client: func(opts ...kgo.Opt) (*kgo.Client, error) {
		return cfg.Client(append(opts, kgo.HeartbeatInterval(200*time.Millisecond))...)
	}}, Config{Group: a[3], Logger: quiet, Drain: 200 * time.Millisecond})
	c := *movedContract
	c.Topic = a[2]
	var once sync.Once
	on(g, &c, func(context.Context, pgx.Tx, event.Of[moved]) error {
		once.Do(func() { fmt.Println(atWork) })
		return Permanent(errBroken)
	})
	ctx, stop := context.WithCancel(t.Context())
	go func() { // the parent closes our input when it is done, or dead
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	if err := g.Run(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestAKillBetweenDeathAndCopyLosesNoCopy(t *testing.T) {
	t.Parallel() // it waits for a session to end
	w := newWorld(t, 2)
	p := w.spawnAs("TestDyingMember", "dying")
	stop := make(chan struct{})
	var load sync.WaitGroup
	load.Go(func() {
		for i := 0; i < 400 && pause(stop, time.Millisecond); i++ {
			w.move(fmt.Sprint("k", i))
		}
	})
	uncopied := `SELECT count(*) FROM waybill.parked WHERE state = 'dead' AND copied_at IS NULL`
	w.until("it works, and is not through with its copies", func() bool {
		return p.mayDie() && w.number(`SELECT count(*) FROM waybill.parked WHERE copied_at IS NOT NULL`) > 20 && w.number(uncopied) > 0
	})
	p.kill()
	left := w.number(uncopied)
	close(stop)
	load.Wait()
	w.start(func(context.Context, pgx.Tx, event.Of[moved]) error { return errBroken }, atOnce)
	w.untilDead(len(w.sent))
	w.holdsCopies()
	t.Logf("%d dead events had no copy at the kill", left)
}

// The note that a copy is written was lost: it is written again, as the same.
func TestACopyThatIsWrittenTwiceHasOneId(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.start(breaks("a", "b").keep, atOnce)
	w.move("a", "b")
	w.untilDead(2)
	w.exec(`UPDATE waybill.parked SET copied_at = NULL WHERE key = 'a'`)
	w.untilDead(2)
	w.copies(3)
	w.holdsCopies()
}

// holdsCopies holds the dead letter topic against the table: each death is
// there, and nothing else.
func (w *world) holdsCopies() {
	w.t.Helper()
	rows, err := w.db.Query(w.t.Context(), `SELECT death_id::text, key FROM waybill.parked WHERE state = 'dead'`)
	if err != nil {
		w.t.Fatal(err)
	}
	want := map[string]string{}
	var id string
	var key []byte
	if _, err := pgx.ForEachRow(rows, []any{&id, &key}, func() error { want[id] = string(key); return nil }); err != nil {
		w.t.Fatal(err)
	}
	cl := w.engine.Client(w.t, kgo.ConsumeTopics(DeadTopic(w.contract.Topic, w.group)), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*time.Minute)
	defer cancel()
	seen := map[string]bool{}
	for len(seen) < len(want) && ctx.Err() == nil {
		for _, c := range cl.PollFetches(ctx).Records() {
			id := headerOf(c, HeaderDeadID)
			if want[id] != string(c.Key) {
				w.t.Fatalf("a copy of %s that is of no death", c.Key)
			}
			seen[id] = true
		}
	}
	if len(seen) < len(want) {
		w.t.Errorf("%d copies of %d deaths", len(seen), len(want))
	}
}
