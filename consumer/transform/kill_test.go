package transform

import (
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
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/registry"
)

var memberArgs = flag.String("member", "", "be a member, for tests of this package alone: brokers|registry|in|out|group|name|point|side|nth|signal")

// Requests between which a member may die. What is behind the answer to one is
// before the next is written.
var points = map[string]int16{
	"InitProducerID": 22, "Fetch": 1, "Produce": 0, "TxnOffsetCommit": 28, "Heartbeat": 12, "EndTxn": 26, "handler": -1,
}

// trap signals its own process at a request, or at the answer to it.
type trap struct {
	point  int16
	side   string // write or read
	left   atomic.Int32
	signal syscall.Signal
}

func (t *trap) at(point int16, side string) {
	if t.point == point && t.side == side && t.left.Add(-1) == 0 {
		_ = syscall.Kill(os.Getpid(), t.signal)
		if t.signal == syscall.SIGKILL {
			select {} // it comes at its own time
		}
	}
}

func (t *trap) OnBrokerWrite(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, _ error) {
	t.at(key, "write")
}

func (t *trap) OnBrokerRead(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, _ error) {
	t.at(key, "read")
}

// TestMember is a process to be killed.
func TestMember(t *testing.T) {
	if *memberArgs == "" {
		t.Skip("a part of other tests")
	}
	a := strings.Split(*memberArgs, "|")
	nth, _ := strconv.Atoi(a[8])
	signal, _ := strconv.Atoi(a[9])
	tr := &trap{point: points[a[6]], side: a[7], signal: syscall.Signal(signal)}
	tr.left.Store(int32(nth))
	w := &world{t: t, group: a[4]}
	w.setContracts(a[2], a[3])
	w.schemas = openRegistry(t, a[1])
	quiet := slog.New(slog.DiscardHandler)
	cfg := w.config()
	cfg.Metrics, cfg.Member, cfg.MaxBatch = nil, a[5], 50
	cfg.MaxBatchBytes = 4000 // so that some of what was read is left when a transaction ends
	g := New(Deps{
		Broker:  quick{broker.Config{Brokers: strings.Split(a[0], ","), Logger: quiet}, time.Second, []kgo.Opt{kgo.WithHooks(tr)}},
		Decoder: registry.NewDecoder(w.schemas), Schemas: w.schemas,
	}, cfg)
	h := book(w.out)
	on(g, w.in, func(ctx context.Context, e event.Of[moved]) ([]event.Data, error) {
		tr.at(-1, tr.side)
		return h(ctx, e)
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

// process is a member in a process of its own.
type process struct {
	cmd *exec.Cmd
	in  io.Closer
}

func (w *world) spawn(name, point, side string, nth int, signal syscall.Signal) *process {
	w.t.Helper()
	args := fmt.Sprintf("%s|%s|%s|%s|%s|%s|%s|%s|%d|%d", strings.Join(w.engine.Brokers, ","), w.url,
		w.in.Topic, w.out.Topic, w.group, name, point, side, nth, signal)
	cmd := exec.CommandContext(w.t.Context(), os.Args[0], "-test.run=^TestMember$", "-member="+args)
	in, err := cmd.StdinPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	return &process{cmd, in}
}

// diesOf waits until the process's own signal has ended it.
func (w *world) diesOf(p *process, where string) {
	w.t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- p.cmd.Wait() }()
	select {
	case err := <-ended:
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			w.t.Fatalf("%s: it ended by itself: %v", where, err)
		}
	case <-time.After(3 * time.Minute):
		_ = p.cmd.Process.Kill()
		w.t.Fatalf("%s: it never came there", where)
	}
}

// load publishes until it is ended.
func (w *world) load() (end func()) {
	stop := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
				w.move(fmt.Sprint("k", i%13), fmt.Sprint("k", i%7))
			}
		}
	})
	var once sync.Once
	end = func() { once.Do(func() { close(stop); running.Wait() }) }
	w.t.Cleanup(end)
	return end
}

// One process after another dies, at each step of a transaction, while another
// member takes over and gives back.
func TestAKillBetweenAnyTwoStepsLosesAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4)
	w.sessions = time.Second
	w.start(book(w.out), func(c *Config) { c.MaxBatch = 50 })
	end := w.load()
	done := 0
	for round := 0; round == 0 || done < kills(t); round++ {
		for _, step := range []string{
			"handler write", "Produce write", "Produce read", "TxnOffsetCommit write", "TxnOffsetCommit read",
			"Heartbeat read", "EndTxn write", "EndTxn read", "Fetch read", "InitProducerID write",
		} {
			point, side, _ := strings.Cut(step, " ")
			nth := 1 + rand.IntN(4)
			if point == "InitProducerID" {
				nth = 1
			}
			w.diesOf(w.spawn("m", point, side, nth, syscall.SIGKILL), fmt.Sprintf("%s %d", step, nth))
			done++
		}
	}
	end()
	w.settled()
}

// A member stops in the middle of a transaction until others have taken its
// partitions over, and then goes on.
func TestAMemberThatWakesAfterItsEndCommitsNothing(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"handler write", "Produce read", "TxnOffsetCommit read", "EndTxn write"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 2)
			w.sessions = time.Second
			w.moveMany(400)
			point, side, _ := strings.Cut(step, " ")
			zombie := w.spawn("z", point, side, 2, syscall.SIGSTOP)
			w.until("it stopped", func() bool { return zombie.stopped() })
			w.start(book(w.out))
			w.until("the other took over", func() bool { return w.behind() == 0 })
			w.moveMany(100)
			w.until("the other goes on", func() bool { return w.behind() == 0 })
			if err := zombie.cmd.Process.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			w.moveMany(100)
			w.until("all is committed", func() bool { return w.behind() == 0 })
			w.until("it works again", func() bool { return w.members() == 2 })
			w.moveMany(100)
			w.settled()
			_ = zombie.in.Close()
			if err := zombie.cmd.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
}

// stopped tells whether a signal holds the process.
func (p *process) stopped() bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(after, "T")
}

// members is how many members of the group have partitions.
func (w *world) members() (n int) {
	groups, err := broker.ListGroups(w.t.Context(), w.admin)
	if err != nil {
		return 0
	}
	for _, g := range groups {
		if g.Name != w.group {
			continue
		}
		for _, m := range g.Members {
			if len(m.Assigned) > 0 {
				n++
			}
		}
	}
	return n
}

func small(c *Config) { c.MaxBatch, c.MaxBatchBytes = 30, 4000 }

// Three members come and go under load.
func TestARebalanceStormLosesAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 6)
	end := w.load()
	var members []*member
	for range 3 {
		members = append(members, w.start(book(w.out), small))
	}
	for range 8 {
		i, before := rand.IntN(len(members)), w.figure("waybill_transform_made_total")
		members[i].end(t)
		w.until("the others go on", func() bool { return w.figure("waybill_transform_made_total") > before })
		members[i] = w.start(book(w.out), small)
		if rand.IntN(2) == 0 {
			continue // at once another one
		}
		w.until("work goes on", func() bool { return w.figure("waybill_transform_made_total") > before+20 })
	}
	end()
	w.settled()
}
