package consumer

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/event"
)

var memberArgs = flag.String("member", "", "be a member: DSN|brokers|topic|group, for TestKilledMembersLoseAndRepeatNothing alone")

// kills is how often: few in `make test`, more by the environment.
func kills(t *testing.T) int {
	t.Helper()
	v := os.Getenv("WAYBILL_TEST_KILLS")
	if v == "" {
		return 3
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		t.Fatalf("WAYBILL_TEST_KILLS=%q: want a number", v)
	}
	return n
}

// TestMember is a process to be killed.
func TestMember(t *testing.T) {
	if *memberArgs == "" {
		t.Skip("a part of TestKilledMembersLoseAndRepeatNothing")
	}
	a := strings.Split(*memberArgs, "|")
	quiet := slog.New(slog.DiscardHandler)
	cfg := broker.Config{Brokers: strings.Split(a[1], ","), Logger: quiet}
	g := New(Deps{DB: openPool(t, a[0], nil), Decoder: plain{}, Client: func(opts ...kgo.Opt) (*kgo.Client, error) {
		return cfg.Client(append(opts, kgo.HeartbeatInterval(200*time.Millisecond))...)
	}}, Config{Group: a[3], Logger: quiet, FlushEvery: 100 * time.Millisecond, Retry: quickRetry, Drain: 200 * time.Millisecond})
	c := *movedContract
	c.Topic = a[2]
	var once sync.Once
	on(g, &c, func(ctx context.Context, tx pgx.Tx, e event.Of[moved]) error {
		once.Do(func() { fmt.Println(atWork) })
		if err := keep(ctx, tx, e); err != nil {
			return err
		}
		if rand.IntN(20) == 0 {
			return errors.New("by chance")
		}
		return nil
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

// atWork is what a member's process says when it gets its first event.
const atWork = "at work"

// process is a member in a process of its own.
type process struct {
	cmd    *exec.Cmd
	in     io.Closer
	atWork chan struct{} // closed when it says so
}

func (w *world) spawn() *process {
	w.t.Helper()
	return w.spawnAs("TestMember", "member")
}

// spawnAs runs a test that is a process, which is told of the world by a flag.
func (w *world) spawnAs(test, flag string) *process {
	w.t.Helper()
	args := strings.Join([]string{w.dsn, strings.Join(w.engine.Brokers, ","), w.contract.Topic, w.group}, "|")
	cmd := exec.CommandContext(w.t.Context(), os.Args[0], "-test.run=^"+test+"$", "-"+flag+"="+args)
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
	p := &process{cmd, in, make(chan struct{})}
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if lines.Text() == atWork {
				close(p.atWork)
			}
		}
	}()
	return p
}

// mayDie tells whether a kill tests this package alone. On the embedded
// broker, a member that dies in its first JoinGroup stays in the group for
// ever, whatever its session timeout.
func (p *process) mayDie() bool {
	if brokertest.Kafka() {
		return true
	}
	select {
	case <-p.atWork:
		return true
	default:
		return false
	}
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

func TestKilledMembersLoseAndRepeatNothing(t *testing.T) {
	t.Parallel() // it waits for sessions to end
	w := newWorld(t, 4)
	members := []*process{w.spawn(), w.spawn()}
	stop := make(chan struct{})
	var load sync.WaitGroup
	load.Go(func() {
		for i := 0; pause(stop, 2*time.Millisecond); i++ {
			w.move(fmt.Sprint("k", i%13), fmt.Sprint("k", i%7))
		}
	})
	for range kills(t) {
		before := w.number(`SELECT count(*) FROM effect`)
		w.until("they work", func() bool { return w.number(`SELECT count(*) FROM effect`) > before+50 })
		i := 0
		w.until("one may be killed", func() bool { i = rand.IntN(len(members)); return members[i].mayDie() })
		members[i].kill()
		members[i] = w.spawn()
	}
	close(stop)
	load.Wait()
	w.settled()
	for _, m := range members {
		_ = m.in.Close()
		if err := m.cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
}
