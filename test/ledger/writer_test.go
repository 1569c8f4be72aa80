package ledger

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
)

// noted is the event of these tests: the Nth fact of aggregate Account. Note
// is its token, by which the books know it.
type noted struct {
	contract *event.Contract
	Account  string `avro:"account"`
	N        int64  `avro:"n"`
	Note     string `avro:"note"`
}

func (n noted) EventContract() *event.Contract { return n.contract }
func (n noted) EventKey() string               { return n.Account }
func (n noted) EventSequence() int64           { return n.N }

const notedSchema = `{"type":"record","name":"Noted","namespace":"ledger","fields":[
	{"name":"account","type":"string"},{"name":"n","type":"long"},{"name":"note","type":"string"}]}`

// aggregates is how many rows the writers contend for.
const aggregates = 12

// writers commit events until they are stopped.
type writers struct {
	h    *house
	pace time.Duration // between two transactions of a writer, at most twice as long
	end  context.CancelFunc
	wg   sync.WaitGroup

	mu       sync.Mutex
	attempts []attempt
}

// write starts n writers.
func (h *house) write(seed uint64, n int) *writers {
	ctx, cancel := context.WithCancel(h.t.Context())
	w := &writers{h: h, pace: 25 * time.Millisecond, end: cancel}
	for i := range n {
		w.wg.Go(func() { w.run(ctx, i, rand.New(rand.NewPCG(seed, uint64(i+1)))) })
	}
	h.t.Cleanup(w.stop)
	return w
}

// stop lets what is begun come to its end.
func (w *writers) stop() {
	w.end()
	w.wg.Wait()
}

func (w *writers) run(ctx context.Context, writer int, r *rand.Rand) {
	for i := 0; ctx.Err() == nil; i++ {
		a := w.transaction(planned(r), fmt.Sprintf("%d-%d", writer, i), r)
		w.mu.Lock()
		w.attempts = append(w.attempts, a)
		w.mu.Unlock()
		pause(ctx, time.Duration(r.Int64N(int64(2*w.pace))))
	}
}

// plan is what a transaction is to be like.
type plan struct {
	keys     []string // sorted: two transactions that hold both must not wait for each other
	events   int      // of each key
	rollback bool     // in the end
	undone   bool     // a part of it, by a savepoint
	slow     time.Duration
}

func planned(r *rand.Rand) plan {
	key := func() string { return fmt.Sprintf("a%d", r.IntN(aggregates)) }
	p := plan{keys: []string{key()}, events: 1 + r.IntN(3)}
	switch x := r.IntN(100); {
	case x < 12:
		p.rollback = true
	case x < 20:
		p.undone = true
	case x < 35:
		p.keys = append(p.keys, key())
		slices.Sort(p.keys)
		p.keys = slices.Compact(p.keys)
	case x < 43: // its ids are made, others commit, and then it does
		p.slow = time.Duration(50+r.IntN(400)) * time.Millisecond
	case x < 45: // large enough for a kill to cut through
		p.events = 60
	}
	return p
}

var errOnPurpose = errors.New("rolled back on purpose")

// transaction runs one plan to its end, whatever that is.
func (w *writers) transaction(p plan, name string, r *rand.Rand) attempt {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	a := attempt{name: name, begun: time.Now(), fate: rolledBack}
	tx, err := w.h.db.Begin(ctx)
	if err != nil {
		pause(ctx, 20*time.Millisecond) // the server is away
		return a
	}
	defer func() { _ = tx.Rollback(ctx) }()
	for _, key := range p.keys {
		if err := w.add(ctx, tx, &a, key, p.events); err != nil {
			return a
		}
	}
	if p.undone {
		err := pgx.BeginFunc(ctx, tx, func(inner pgx.Tx) error {
			lost := attempt{name: name + "-undone"}
			if err := w.add(ctx, inner, &lost, p.keys[0], 1+r.IntN(2)); err != nil {
				return err
			}
			a.undone = lost.tokens
			return errOnPurpose
		})
		if !errors.Is(err, errOnPurpose) {
			return a
		}
	}
	pause(ctx, p.slow)
	if p.rollback {
		return a
	}
	err = tx.Commit(ctx)
	switch {
	case err == nil:
		a.fate = committed
	case !errors.Is(err, pgx.ErrTxCommitRollback):
		a.fate = unknown // the answer was lost
	}
	a.ended = time.Now()
	return a
}

// add locks the aggregate, moves it on by n facts and tells each of them.
func (w *writers) add(ctx context.Context, tx pgx.Tx, a *attempt, key string, n int) error {
	var version int64
	err := tx.QueryRow(ctx, `UPDATE ledger.aggregate SET version = version + $2 WHERE id = $1 RETURNING version`, key, n).Scan(&version)
	if err != nil {
		return err
	}
	var events []event.Data
	var tokens []string
	for i := range n {
		token := fmt.Sprintf("%s-%s-%d", a.name, key, i)
		tokens = append(tokens, token)
		events = append(events, noted{contract: w.h.contract, Account: key, N: version - int64(n-1-i), Note: token})
	}
	_, err = tx.Exec(ctx, `INSERT INTO ledger.fact SELECT token, $2, $3 + i FROM unnest($1::text[]) WITH ORDINALITY AS u (token, i)`,
		tokens, key, version-int64(n))
	if err != nil {
		return err
	}
	a.tokens = append(a.tokens, tokens...)
	return w.h.ob.Add(event.WithTenant(ctx, "t1"), tx, events...)
}

// probe commits one event and waits for it in the log.
func (h *house) probe() {
	h.t.Helper()
	w := &writers{h: h}
	var a attempt
	h.eventually(time.Minute, func() (bool, string) {
		a = w.transaction(plan{keys: []string{"probe"}, events: 1}, "probe", nil)
		return a.fate == committed, "no event can be written"
	})
	h.eventually(time.Minute, func() (bool, string) {
		return h.tail.has(a.tokens[0]), "the first event is not published"
	})
}
