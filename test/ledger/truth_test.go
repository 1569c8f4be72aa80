package ledger

import (
	"time"

	"github.com/jackc/pgx/v5"
)

// attempt is a transaction as its writer saw it.
type attempt struct {
	name         string
	begun, ended time.Time
	tokens       []string // of its events
	undone       []string // of those a savepoint undid
	fate         fate
}

type fate int

const (
	rolledBack fate = iota
	committed
	unknown // the commit was sent and its answer lost
)

// fact is an event that must be in the log.
type fact struct {
	aggregate string
	n         int64
}

// settle gives what committed, by token: the table of facts was written in the
// same transactions. It holds Postgres to its answers, and each transaction to
// all or nothing.
func (h *house) settle(w *writers) map[string]fact {
	h.t.Helper()
	facts := map[string]fact{}
	rows, err := h.db.Query(h.t.Context(), `SELECT token, aggregate, n FROM ledger.fact`)
	h.must(err)
	var token string
	var f fact
	_, err = pgx.ForEachRow(rows, []any{&token, &f.aggregate, &f.n}, func() error {
		facts[token] = f
		return nil
	})
	h.must(err)
	var fates [3]int
	for _, a := range w.attempts {
		fates[a.fate]++
		h.settleOne(a, facts)
	}
	h.t.Logf("%d transactions committed, %d rolled back, of %d the answer was lost; %d events",
		fates[committed], fates[rolledBack], fates[unknown], len(facts))
	h.checkVersions(facts)
	return facts
}

func (h *house) settleOne(a attempt, facts map[string]fact) {
	h.t.Helper()
	there := 0
	for _, token := range a.tokens {
		if _, ok := facts[token]; ok {
			there++
		}
	}
	switch {
	case a.fate == committed && there < len(a.tokens):
		h.t.Errorf("transaction %s committed, and Postgres has %d of its %d facts", a.name, there, len(a.tokens))
	case a.fate == rolledBack && there > 0:
		h.t.Errorf("transaction %s rolled back, and Postgres has %d of its facts", a.name, there)
	case there > 0 && there < len(a.tokens):
		h.t.Errorf("of transaction %s Postgres has %d of %d facts", a.name, there, len(a.tokens))
	}
	for _, token := range a.undone {
		if _, ok := facts[token]; ok {
			h.t.Errorf("fact %s was undone and is there", token)
		}
	}
}

// checkVersions: an aggregate at version v has the facts 1 to v.
func (h *house) checkVersions(facts map[string]fact) {
	h.t.Helper()
	seen := map[fact]bool{}
	highest := map[string]int64{}
	for token, f := range facts {
		if seen[f] {
			h.t.Errorf("two facts are %s:%d, one is %s", f.aggregate, f.n, token)
		}
		seen[f] = true
		highest[f.aggregate] = max(highest[f.aggregate], f.n)
	}
	var sum int64
	for _, n := range highest {
		sum += n
	}
	if versions := h.number(`SELECT sum(version)::bigint FROM ledger.aggregate`); versions != sum || sum != int64(len(facts)) {
		h.t.Errorf("the aggregates' versions add up to %d, their highest facts to %d, and there are %d facts", versions, sum, len(facts))
	}
}
