package embedded

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/broker"
)

// The crash test runs this binary again as the broker that is killed.
const (
	childDir    = "WAYBILL_TEST_BROKER_DIR"
	childListen = "WAYBILL_TEST_BROKER_LISTEN"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		os.Exit(serve(dir, os.Getenv(childListen)))
	}
	os.Exit(m.Run())
}

func serve(dir, listen string) int {
	if err := limitFiles(os.Getenv(childFiles)); err != nil {
		fmt.Println("error", err)
		return 1
	}
	b, err := Start(context.Background(), Config{Dir: dir, Listen: listen, Logger: quiet})
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	fmt.Println("up", b.Addr())
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // until the parent goes
	select {
	case <-b.Failed():
	default:
		return 0
	}
	if err := errors.Join(b.Err(), b.Close()); !errors.Is(err, ErrWriteFailed) {
		return 1
	}
	return exitFailed
}

type child struct {
	cmd  *exec.Cmd
	in   io.Closer
	addr string
}

func spawn(t *testing.T, dir, listen string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$") // #nosec G204 -- ourselves
	cmd.Env = append(os.Environ(), childDir+"="+dir, childListen+"="+listen)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{cmd: cmd, in: in}
	t.Cleanup(c.kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	addr, ok := strings.CutPrefix(strings.TrimSpace(line), "up ")
	if !ok {
		t.Fatalf("the broker did not start: %q, %v", line, err)
	}
	c.addr = addr
	return c
}

func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

const (
	crashTopic = "numbers"
	crashGroup = "readers"
	crashParts = 3
)

// ledger is what the broker acknowledged.
type ledger struct {
	mu    sync.Mutex
	acked map[uint64]kgo.Offset
	count atomic.Int64

	committed map[int32]commit
}

type commit struct {
	offset int64
	at     time.Time
}

// TestKilledBrokerLosesNothingAcknowledged kills the broker at random moments
// under load and looks for every acknowledged record and settled commit.
func TestKilledBrokerLosesNothingAcknowledged(t *testing.T) {
	rounds := 5
	if testing.Short() {
		rounds = 2
	}
	dir := t.TempDir()
	c := spawn(t, dir, "127.0.0.1:0")
	cfg := broker.Config{Brokers: []string{c.addr}, Logger: quiet}
	setup, err := cfg.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer setup.Close()
	if err := broker.Declare(t.Context(), setup, broker.Capabilities{}, broker.Topic{Name: crashTopic, Partitions: crashParts, Retention: broker.Unlimited}); err != nil {
		t.Fatal(err)
	}
	l := &ledger{acked: map[uint64]kgo.Offset{}, committed: map[int32]commit{}}
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { l.produce(ctx, t, cfg) })
	wg.Go(func() { l.commit(ctx, t, cfg) })
	var killed time.Time
	for range rounds {
		before := l.count.Load()
		eventually(t, "records acknowledged", func() bool { return l.count.Load() > before+2000 })
		wait(ctx, time.Duration(rand.IntN(1500))*time.Millisecond)
		killed = time.Now()
		c.kill()
		c = spawn(t, dir, c.addr)
	}
	before := l.count.Load()
	eventually(t, "records acknowledged after the last kill", func() bool { return l.count.Load() > before+500 })
	stop()
	wg.Wait()
	c.kill()
	spawn(t, dir, c.addr)
	l.checkRecords(t, cfg)
	l.checkCommits(t, cfg, killed)
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func (l *ledger) produce(ctx context.Context, t *testing.T, cfg broker.Config) {
	cl, err := cfg.Client(kgo.DefaultProduceTopic(crashTopic), kgo.RequiredAcks(kgo.AllISRAcks()), kgo.MaxBufferedRecords(500))
	if err != nil {
		t.Error(err)
		return
	}
	defer cl.Close()
	for n := uint64(0); ctx.Err() == nil; n++ {
		key := binary.BigEndian.AppendUint64(nil, n)
		cl.Produce(ctx, &kgo.Record{Key: key, Value: key}, func(r *kgo.Record, err error) {
			if err != nil {
				if ctx.Err() == nil {
					t.Errorf("record %d: %v", n, err)
				}
				return
			}
			l.mu.Lock()
			l.acked[n] = kgo.NewOffset().At(r.Offset)
			l.mu.Unlock()
			l.count.Add(1)
		})
	}
}

// commit commits rising offsets, about fifty times a second.
func (l *ledger) commit(ctx context.Context, t *testing.T, cfg broker.Config) {
	cl, err := cfg.Client()
	if err != nil {
		t.Error(err)
		return
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	for n := int64(1); ctx.Err() == nil; n++ {
		var os kadm.Offsets
		for p := range int32(crashParts) {
			os.AddOffset(crashTopic, p, n, -1)
		}
		rs, err := adm.CommitOffsets(ctx, crashGroup, os)
		if err == nil && rs.Error() == nil {
			l.mu.Lock()
			for p := range int32(crashParts) {
				l.committed[p] = commit{n, time.Now()}
			}
			l.mu.Unlock()
		}
		wait(ctx, 20*time.Millisecond)
	}
}

func (l *ledger) checkRecords(t *testing.T, cfg broker.Config) {
	t.Helper()
	cl, err := cfg.Client(kgo.ConsumeTopics(crashTopic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ends, err := kadm.NewClient(cl).ListEndOffsets(t.Context(), crashTopic)
	if err != nil {
		t.Fatal(err)
	}
	var want, got int64
	ends.Each(func(o kadm.ListedOffset) { want += o.Offset })
	seen := make(map[uint64]int, want)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for got < want {
		fs := cl.PollFetches(ctx)
		if err := errors.Join(fs.Err0(), ctx.Err()); err != nil {
			t.Fatalf("%d of %d records read: %v", got, want, err)
		}
		fs.EachRecord(func(r *kgo.Record) { got++; seen[binary.BigEndian.Uint64(r.Value)]++ })
	}
	lost, twice := 0, 0
	for n := range l.acked {
		if seen[n] == 0 {
			lost++
		}
	}
	for _, n := range seen {
		if n > 1 {
			twice++
		}
	}
	t.Logf("%d acknowledged, %d lost, %d written twice", len(l.acked), lost, twice)
	if lost > 0 {
		t.Errorf("%d of %d acknowledged records are lost", lost, len(l.acked))
	}
}

// A commit is durable when it is acknowledged; a second of grace is what is
// promised.
func (l *ledger) checkCommits(t *testing.T, cfg broker.Config, killed time.Time) {
	t.Helper()
	cl, err := cfg.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	rs, err := kadm.NewClient(cl).FetchOffsets(t.Context(), crashGroup)
	if err != nil {
		t.Fatal(err)
	}
	for p, want := range l.committed {
		got, _ := rs.Lookup(crashTopic, p)
		if got.At < want.offset {
			t.Errorf("partition %d: offset %d committed, %d found (killed %s)", p, want.offset, got.At, killed)
		}
	}
}
