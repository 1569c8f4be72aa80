package consumer

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Ask is who wants something done about dead events, and why. Both are kept.
type Ask struct {
	By     string `json:"by"`
	Reason string `json:"reason"`
	DryRun bool   `json:"dry_run,omitempty"` // only count
}

// maxRun bounds the keys of one request.
const maxRun = 10_000

// Redriven is what a request to redrive found.
type Redriven struct {
	Run  string `json:"run"`  // names the request, for RedriveProgress; empty in a dry run or where there was nothing to do
	Keys int64  `json:"keys"` // to be tried again by this request
	More bool   `json:"more"` // there were more keys than one request takes: ask again
}

// Redrive has the keys that a filter chooses tried again, each from its head,
// and what waits behind it after it, in order. Whoever owns the partition does
// that within a second or so, while new events of the key go behind; no other
// group takes part. A head that fails again has all tries of its policy once
// more.
//
// A key that is to be tried again already is not touched: asking twice is as
// good as once.
func Redrive(ctx context.Context, db *pgxpool.Pool, f DeadFilter, a Ask) (Redriven, error) {
	if err := a.check(); err != nil {
		return Redriven{}, err
	}
	if a.DryRun {
		var out Redriven
		err := db.QueryRow(ctx, `SELECT count(*) FROM waybill.parked WHERE `+whereSQL+` AND state <> 'redrive'`, f.args()...).Scan(&out.Keys)
		out.More = out.Keys > maxRun
		if err != nil {
			return out, fmt.Errorf("redrive: %w", err)
		}
		return out, nil
	}
	run := uuid.New()
	tag, err := db.Exec(ctx, `WITH chosen AS (
			SELECT seq FROM waybill.parked WHERE `+whereSQL+` AND state <> 'redrive' ORDER BY seq LIMIT $14 FOR UPDATE),
		asked AS (
			UPDATE waybill.parked p SET state = 'redrive', attempts = 0, next_at = now(), redriven_at = now(),
				hole_ok = hole_ok OR class IN ('gap', 'late')
			FROM chosen WHERE p.seq = chosen.seq RETURNING p.*)
		INSERT INTO waybill.dead_action (run, action, by, reason, group_name, topic, partition, "offset", key,
			event_id, type, tenant, class, error)
		SELECT $11, 'redrive', $12, $13, group_name, topic, partition, "offset", key, event_id, type, tenant, class, error
		FROM asked`, append(f.args(), run, a.By, a.Reason, maxRun)...)
	if err != nil {
		return Redriven{}, fmt.Errorf("redrive: %w", err)
	}
	out := Redriven{Keys: tag.RowsAffected(), More: tag.RowsAffected() == maxRun}
	if out.Keys > 0 {
		out.Run = run.String()
	}
	return out, nil
}

const maxAsk = 1000 // bytes of a name or a reason

func (a *Ask) check() error {
	a.By, a.Reason = storable(strings.TrimSpace(a.By)), storable(strings.TrimSpace(a.Reason))
	switch {
	case a.By == "" || len(a.By) > maxAsk:
		return errors.New("who asks? want a name of at most 1000 bytes")
	case len(a.Reason) > maxAsk:
		return errors.New("the reason is too long: want at most 1000 bytes")
	}
	return nil
}

// RedriveProgress is how far a run has come.
type RedriveProgress struct {
	Keys      int64 `json:"keys"`
	Freed     int64 `json:"freed"`      // all their events are handled
	Draining  int64 `json:"draining"`   // past the head that was dead; events behind it are being handled
	Waiting   int64 `json:"waiting"`    // for their turn, for a retry, or for a member of the group
	DeadAgain int64 `json:"dead_again"` // the head, or one behind it
}

// Done tells whether nothing more will come of the run by itself.
func (p RedriveProgress) Done() bool { return p.Draining+p.Waiting == 0 }

// ErrNoRun is a run that nobody asked for, or 90 days ago.
var ErrNoRun = errors.New("no such redrive")

// FindRedrive tells how far a run has come.
func FindRedrive(ctx context.Context, db *pgxpool.Pool, run string) (p RedriveProgress, err error) {
	rows, err := db.Query(ctx, `SELECT count(*), count(*) FILTER (WHERE h.seq IS NULL),
			count(*) FILTER (WHERE h.state IN ('retrying', 'redrive', 'waiting') AND NOT h.same),
			count(*) FILTER (WHERE h.state IN ('retrying', 'redrive', 'waiting') AND h.same),
			count(*) FILTER (WHERE h.state = 'dead')
		FROM waybill.dead_action a LEFT JOIN LATERAL (
			SELECT seq, state, p."offset" = a."offset" AND p.event_id = a.event_id AS same FROM waybill.parked p
			WHERE p.group_name = a.group_name AND p.topic = a.topic AND p.partition = a.partition AND p.key = a.key
			ORDER BY seq LIMIT 1) h ON true
		WHERE run = $1 AND action = 'redrive'`, run)
	if err != nil {
		return p, fmt.Errorf("progress of redrive %s: %w", run, err)
	}
	p, err = pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (p RedriveProgress, err error) {
		err = row.Scan(&p.Keys, &p.Freed, &p.Draining, &p.Waiting, &p.DeadAgain)
		return p, err
	})
	if err == nil && p.Keys == 0 {
		err = ErrNoRun
	}
	if err != nil {
		return p, fmt.Errorf("progress of redrive %s: %w", run, err)
	}
	return p, nil
}
