package doctor

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"
)

// publication looks whether every event is in the relay's stream.
func publication(ctx context.Context, s *Subject) ([]Finding, error) {
	if !s.fromWAL() {
		return ok("none is needed in mode poll"), nil
	}
	name := s.Relay.Publication
	var insert, root, table, whole bool
	err := s.db.QueryRow(ctx, `SELECT p.pubinsert, p.pubviaroot, t.pubname IS NOT NULL OR p.puballtables
				OR EXISTS (SELECT FROM pg_publication_rel r WHERE r.prpubid = p.oid AND r.prrelid = 'waybill.outbox_events'::regclass),
			coalesce(to_jsonb(t)->>'rowfilter' IS NULL AND coalesce(jsonb_array_length(to_jsonb(t)->'attnames'), all_columns.n) = all_columns.n, true)
		FROM pg_publication p
		LEFT JOIN pg_publication_tables t ON t.pubname = p.pubname AND t.schemaname = 'waybill' AND t.tablename = 'outbox_events'
		CROSS JOIN (SELECT count(*) AS n FROM pg_attribute WHERE attrelid = 'waybill.outbox_events'::regclass AND attnum > 0 AND NOT attisdropped) all_columns
		WHERE p.pubname = $1`, name).Scan(&insert, &root, &table, &whole)
	id := ident(name)
	const why = "an event that is not in the publication is never read from the WAL"
	if errors.Is(err, pgx.ErrNoRows) {
		return fail(name+" does not exist", why,
			"CREATE PUBLICATION "+id+" FOR TABLE waybill.outbox_events WITH (publish = 'insert', publish_via_partition_root = true); the relay then makes its slot anew and publishes what it missed"), nil
	}
	if err != nil {
		return nil, err
	}
	var wrong, mend []string
	if !table {
		wrong, mend = append(wrong, "waybill.outbox_events is not in it"), append(mend, "ALTER PUBLICATION "+id+" ADD TABLE waybill.outbox_events")
	}
	if !whole {
		wrong, mend = append(wrong, "it leaves rows or columns out"), append(mend, "ALTER PUBLICATION "+id+" SET TABLE waybill.outbox_events")
	}
	if !insert || !root {
		wrong = append(wrong, "it leaves inserts out, or names partitions instead of their table")
		mend = append(mend, "ALTER PUBLICATION "+id+" SET (publish = 'insert', publish_via_partition_root = true)")
	}
	if len(wrong) > 0 {
		return fail(name+": "+strings.Join(wrong, ", "), why, strings.Join(mend, "; ")), nil
	}
	return ok("%s carries every insert of waybill.outbox_events", name), nil
}
