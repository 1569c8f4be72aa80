package feed

import (
	"context"
	"flag"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/queue"
)

var feederArgs = flag.String("feeder", "", "be a feed: DSN|brokers|topic|group, for TestAFeedThatIsKilledLosesAndRepeatsNothing alone")

// TestFeeder is a process to be killed.
func TestFeeder(t *testing.T) {
	if *feederArgs == "" {
		t.Skip("a part of TestAFeedThatIsKilledLosesAndRepeatsNothing")
	}
	a := strings.Split(*feederArgs, "|")
	db, err := pg.Open(t.Context(), a[0], pg.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	quiet := slog.New(slog.DiscardHandler)
	cfg := broker.Config{Brokers: strings.Split(a[1], ","), Logger: quiet}
	f := New(Deps{DB: db, Client: func(opts ...kgo.Opt) (*kgo.Client, error) {
		return cfg.Client(append(opts, kgo.HeartbeatInterval(200*time.Millisecond), kgo.SessionTimeout(6*time.Second))...)
	}}, Config{Queue: "mail", Topic: a[2], Group: a[3], Logger: quiet})
	ctx, stop := context.WithCancel(t.Context())
	go func() { // the parent closes our input when it is done, or dead
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	if err := f.Run(ctx); err != nil {
		t.Fatal(err)
	}
}

// A killed process is in the group until its session is over; the next one then
// goes on exactly behind what is in the queue.
func TestAFeedThatIsKilledLosesAndRepeatsNothing(t *testing.T) {
	w := newWorld(t, queue.Settings{Dedupe: time.Second})
	const all = 6000
	for i := 0; i < all; i += 500 {
		w.publish("a.Any", 500, i)
	}
	kill := w.spawn()
	w.until("it works", func() bool { return w.number(countMessages) > 0 })
	kill()
	kill = w.spawn()
	w.until("all came", func() bool { return w.number(countMessages) >= all })
	kill()
	if n := w.number(`SELECT count(DISTINCT body) FROM waybill.queue_messages`); n != all || w.number(countMessages) != all {
		t.Errorf("%d different of %d messages, want %d", n, w.number(countMessages), all)
	}
}

func (w *world) spawn() (kill func()) {
	w.t.Helper()
	args := strings.Join([]string{w.db.Config().ConnString(), strings.Join(w.engine.Brokers, ","), w.topic, w.group}, "|")
	cmd := exec.CommandContext(w.t.Context(), os.Args[0], "-test.run=^TestFeeder$", "-feeder="+args)
	in, err := cmd.StdinPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	return func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = in.Close()
	}
}
