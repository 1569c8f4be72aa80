package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/outbox/relay"
)

// slot looks at the relay's.
func slot(ctx context.Context, s *Subject) ([]Finding, error) {
	st, err := relay.ReadSlot(ctx, s.db, s.Relay.Slot)
	if err != nil {
		return nil, err
	}
	advice := strings.ReplaceAll(st.Advise(s.Relay), relay.StartCommand, s.start(relay.StartCommand))
	if !s.fromWAL() {
		if advice == "" {
			return ok("none, as mode poll needs none"), nil
		}
		return warn(st.Name+" is left over", "it holds back WAL and old rows for nobody", advice), nil
	}
	const stopped = "events are read from it, and none are published until somebody does"
	switch {
	case !st.Exists && s.messages():
		return fail(st.Name+" is missing", "events written to the WAL alone would be lost, so writers are refused", advice), nil
	case !st.Exists:
		return warn(st.Name+" is missing", stopped+"; none is lost, they stand in the table", advice), nil
	}
	if mine, err := isOurs(ctx, s); err != nil || mine != "" {
		return fail(st.Name+" "+mine, "the relay cannot read it", "drop it, or give the relay a slot of another name"), err
	}
	published, err := relay.ReadPublication(ctx, s.db, s.Relay.Publication)
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("%s, %s of WAL not confirmed, %s kept, status %s", st.Name, size(st.LagBytes), size(st.RetainedBytes), or(st.WALStatus, "unknown"))
	switch {
	case st.WALStatus == "lost":
		return fail(what, "the server threw away WAL that the relay had not read", advice), nil
	case st.WALStatus == "unreserved":
		return fail(what, "it holds more WAL than max_slot_wal_keep_size and is about to be lost", advice), nil
	case !st.Active && !published.Whole:
		return fail(what+", inactive", stopped+": a relay that runs cannot, while the publication leaves events out", "see publication"), nil
	case !st.Active:
		return fail(what+", inactive", stopped, advice), nil
	case advice != "":
		return warn(what, "it is on its way to be lost", advice), nil
	}
	return ok("%s, active", what), nil
}

// isOurs is empty for a slot of this database that the relay can read.
func isOurs(ctx context.Context, s *Subject) (wrong string, err error) {
	var database, plugin string
	err = s.db.QueryRow(ctx, `SELECT coalesce(database, ''), coalesce(plugin, '') FROM pg_replication_slots WHERE slot_name = $1`, s.Relay.Slot).
		Scan(&database, &plugin)
	switch {
	case errors.Is(err, pgx.ErrNoRows), err == nil && database == s.db.Config().ConnConfig.Database && plugin == "pgoutput":
		return "", nil
	case err != nil:
		return "", err
	case plugin == "":
		return "is a physical slot", nil
	}
	return fmt.Sprintf("belongs to database %s and plugin %s", database, plugin), nil
}

// smallSlot is what a slot may hold back without a word: it costs a segment
// or two whatever it is for.
const smallSlot = 32 << 20

// otherSlots are everybody's that nobody reads. They hold WAL on the same disk.
func otherSlots(ctx context.Context, s *Subject) ([]Finding, error) {
	rows, err := s.db.Query(ctx, `SELECT slot_name, coalesce(database, ''), coalesce(wal_status, ''),
			pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::bigint AS kept
		FROM pg_replication_slots WHERE slot_name <> $1 AND NOT active AND restart_lsn IS NOT NULL
			AND pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn) > $2 ORDER BY kept DESC`, s.Relay.Slot, smallSlot)
	if err != nil {
		return nil, err
	}
	var name, database, status string
	var kept int64
	var list, drops []string
	_, err = pgx.ForEachRow(rows, []any{&name, &database, &status, &kept}, func() error {
		list = append(list, fmt.Sprintf("%s of %s holds %s (%s)", name, or(database, "the whole server"), size(&kept), status))
		drops = append(drops, fmt.Sprintf("SELECT pg_drop_replication_slot(%s)", literal(name)))
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return ok("none that nobody reads and that holds back much WAL"), nil
	}
	return warn("inactive: "+strings.Join(list, "; "), "WAL that a slot holds back fills the disk, and a full disk stops the server",
		"start what reads it, or, if that is gone for good: "+strings.Join(drops, "; ")), nil
}
