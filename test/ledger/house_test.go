package ledger

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/outbox"
	"github.com/waybillhq/waybill/test/proc"
)

// house is the processes of one run: Postgres, a broker with its registry, and
// relays, of which one works and the others stand by. On a real Kafka the
// broker of ours serves the registry alone.
type house struct {
	t        *testing.T
	mode     mode
	database *database
	db       *pgxpool.Pool // for writers and questions
	broker   *proc.Waybill
	kafka    string
	caps     broker.Capabilities
	relays   []*relay
	members  []*member
	tail     *tail
	contract *event.Contract
	ob       *outbox.Outbox

	mu       sync.Mutex
	troubles []error // of goroutines that cannot end the test
}

func newHouse(t *testing.T, m mode) *house {
	t.Helper()
	h := &house{t: t, mode: m, database: newDatabase(t), broker: proc.Broker(t)}
	h.contract = event.MustContract(brokertest.Topic(t, "ledger"), "/test", notedSchema)
	h.ob = outbox.New([]*event.Contract{h.contract}, m.writes)
	h.kafka = h.broker.Kafka
	if brokertest.Kafka() {
		h.kafka, h.caps = os.Getenv(brokertest.Variable), broker.Kafka()
	}
	h.members = []*member{h.database.member(), h.brokerMember()}
	h.open()
	h.declareTopic()
	h.tail = h.follow()
	return h
}

func (h *house) brokerMember() *member {
	w := h.broker
	running := true // by proc.Broker
	return &member{
		name: "broker", strikes: make(chan strike), gone: w.Done,
		start: func(context.Context) error {
			if running {
				running = false
				return nil
			}
			return w.TryStart()
		},
		kill: func() error { w.Kill(); return nil },
	}
}

// relay is a child that plays the role, and what it printed.
type relay struct {
	*member
	process *proc.Waybill
	log     *logFile
}

// addRelay prepares one more relay; start it, or keep it.
func (h *house) addRelay() *relay {
	h.t.Helper()
	name := fmt.Sprintf("relay %d", len(h.relays)+1)
	log := newLogFile(h.t, name) // before the process, so that it closes after
	w := proc.Role(h.t, "relay")
	w.Log = log
	w.Env = append([]string{
		"WAYBILL_DATABASE_URL=" + h.database.dsn(),
		"WAYBILL_KAFKA_BROKERS=" + h.kafka,
		"WAYBILL_REGISTRY_URL=" + h.broker.Registry,
	}, h.mode.env...)
	r := &relay{process: w, log: log}
	r.member = &member{
		name: name, strikes: make(chan strike), gone: w.Done,
		start: func(context.Context) error { return w.Launch() },
		kill:  func() error { w.Kill(); return nil },
	}
	h.relays = append(h.relays, r)
	h.members = append(h.members, r.member)
	return r
}

// startRelay adds a relay that nobody keeps.
func (h *house) startRelay() *relay {
	h.t.Helper()
	r := h.addRelay()
	h.must(r.start(h.t.Context()))
	return r
}

// keepAll starts the members and starts them again whenever they end, until
// the test does.
func (h *house) keepAll() {
	ctx, cancel := context.WithCancel(context.Background())
	var keepers sync.WaitGroup
	for _, m := range h.members {
		keepers.Go(func() { m.keep(ctx, h.trouble) })
	}
	h.t.Cleanup(func() {
		cancel()
		keepers.Wait()
		for _, r := range h.relays {
			r.awaitStart()
		}
		for _, m := range h.members {
			h.t.Logf("%s was started %d times", m.name, m.starts)
		}
	})
}

// awaitStart waits, not for ever, until a relay that was started a moment ago is
// up or gone: asked to stop before, it says that it failed.
func (r *relay) awaitStart() {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for late := time.Now().Add(2 * time.Minute); r.starts > 0 && time.Now().Before(late); <-tick.C {
		if r.process.Ended() || strings.Contains(r.process.Output(), "msg=running") {
			return
		}
	}
}

func (h *house) trouble(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.troubles = append(h.troubles, err)
}

func (h *house) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// eventually waits until cond holds. Its bound is generous: what is slow here
// is the machine.
func (h *house) eventually(atMost time.Duration, cond func() (bool, string)) {
	h.t.Helper()
	late := time.Now().Add(atMost)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, why := cond()
		if ok {
			return
		}
		if time.Now().After(late) {
			h.t.Fatalf("after %s: %s", atMost, why)
		}
		<-tick.C
	}
}

// logFile keeps what a relay printed over all its starts. The end of it is
// shown if the test fails.
type logFile struct {
	mu sync.Mutex
	f  *os.File
}

func newLogFile(t *testing.T, name string) *logFile {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), strings.ReplaceAll(name, " ", "-")+".log"))
	if err != nil {
		t.Fatal(err)
	}
	l := &logFile{f: f}
	t.Cleanup(func() {
		if t.Failed() {
			s := l.text()
			t.Logf("%s printed, in the end:\n%s", name, s[max(0, len(s)-6000):])
		}
		_ = f.Close()
	})
	return l
}

func (l *logFile) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.f.Write(b)
}

func (l *logFile) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, _ := os.ReadFile(l.f.Name())
	return string(b)
}

// count is how many lines have all of parts in them.
func (l *logFile) count(parts ...string) int {
	n := 0
lines:
	for line := range strings.Lines(l.text()) {
		for _, p := range parts {
			if !strings.Contains(line, p) {
				continue lines
			}
		}
		n++
	}
	return n
}
