// Package doctor looks for what keeps Waybill from working, or will: settings
// of the server, slots, disks, clocks, transactions left open, a pooler in the
// way, a broker that cannot be reached. It changes nothing, and says of each
// thing what it found, why it matters, and what mends it.
//
// It sees what the role in the connection string may see. What it cannot see
// it says, as a warning: unknown is not well.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/outbox/relay"
	"github.com/waybillhq/waybill/registry"
)

// Verdict is how a check went.
type Verdict string

// The verdicts.
const (
	OK   Verdict = "ok"
	Warn Verdict = "warn" // works now, and may not later; or could not be looked at
	Fail Verdict = "fail" // does not work
)

// Finding is the result of one check.
type Finding struct {
	Check   string  `json:"check"`
	Verdict Verdict `json:"verdict"`
	Found   string  `json:"found"`
	Why     string  `json:"why,omitempty"`  // it matters
	Mend    string  `json:"mend,omitempty"` // commands or settings
}

// Subject is what is looked at.
type Subject struct {
	DatabaseURL string
	DataDir     string       // of a server on this machine, where that is known; else empty
	Relay       relay.Config // mode, slot, publication and once-only publishing
	MaxBacklog  int64        // events past which writers are refused, the outbox's default if zero
	Up          string       // the command that starts everything, where one did; else empty

	Broker   broker.Config
	Topics   []broker.Topic // as their owners declare them
	Registry *registry.Client

	// LongTransaction is how long a transaction may be open, 5 min if zero.
	LongTransaction time.Duration
	// Now is the clock of this host, time.Now if nil.
	Now func() time.Time

	db      *pgxpool.Pool // while its checks run
	version int           // of the server, as in server_version_num
	oldRows int64
}

// checkTimeout bounds one check.
const checkTimeout = 10 * time.Second

// check looks at one thing. An error means that it could not be looked at.
type check struct {
	name string
	look func(context.Context, *Subject) ([]Finding, error)
}

// Run looks at everything. Its findings come in an order of their own, always
// the same.
func Run(ctx context.Context, s Subject) []Finding {
	s = s.withDefaults()
	groups := []func(context.Context, Subject) []Finding{lookAtDatabase, lookAtBroker, lookAtRegistry}
	found := make([][]Finding, len(groups))
	var g errgroup.Group // an unreachable one must not cost the others their time
	for i, look := range groups {
		g.Go(func() error {
			found[i] = look(ctx, s)
			return nil
		})
	}
	_ = g.Wait() // they return none
	return slices.Concat(found...)
}

func (s Subject) withDefaults() Subject {
	if s.Relay.Mode == "" {
		s.Relay.Mode = relay.WAL
	}
	if s.Relay.Publication == "" {
		s.Relay.Publication = "waybill_outbox"
	}
	if s.LongTransaction <= 0 {
		s.LongTransaction = 5 * time.Minute
	}
	if s.oldRows == 0 {
		s.oldRows = oldRows
	}
	if s.Now == nil {
		s.Now = time.Now
	}
	return s
}

// start is the command that starts a part whose own one is role.
func (s *Subject) start(role string) string {
	if s.Up != "" {
		return s.Up
	}
	return role
}

// startIt says how an engine is started.
func (s *Subject) startIt() string {
	if s.Up != "" {
		return "start it: " + s.Up
	}
	return "start it"
}

// Unlooked is how many checks there was no looking at, because what they look at
// could not be reached or is not there.
func Unlooked(found []Finding) (n int) {
	for _, c := range slices.Concat(databaseChecks(), tableChecks(), []check{{name: "topics"}}) {
		if !slices.ContainsFunc(found, func(f Finding) bool { return f.Check == c.name }) {
			n++
		}
	}
	return n
}

// fromWAL tells whether the relay reads a slot.
func (s *Subject) fromWAL() bool { return s.Relay.Mode != relay.Poll }

// messages tells whether events are written to the WAL alone.
func (s *Subject) messages() bool { return s.Relay.Mode == relay.Message }

// all runs checks one after the other.
func all(ctx context.Context, s *Subject, checks []check) (found []Finding) {
	for _, c := range checks {
		found = append(found, c.run(ctx, s)...)
	}
	return found
}

func (c check) run(ctx context.Context, s *Subject) []Finding {
	within, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	found, err := c.look(within, s)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			err = fmt.Errorf("no answer within %s", checkTimeout)
		}
		found = append(found, Finding{
			Verdict: Warn, Found: "could not be looked at: " + err.Error(),
			Why: "what is not known may be anything",
		})
	}
	for i := range found {
		found[i].Check = c.name
	}
	return found
}

func ok(format string, args ...any) []Finding {
	return []Finding{{Verdict: OK, Found: fmt.Sprintf(format, args...)}}
}

func warn(found, why, mend string) []Finding {
	return []Finding{{Verdict: Warn, Found: found, Why: why, Mend: mend}}
}

func fail(found, why, mend string) []Finding {
	return []Finding{{Verdict: Fail, Found: found, Why: why, Mend: mend}}
}
