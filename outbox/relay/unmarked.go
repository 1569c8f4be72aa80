package relay

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/pg/wal"
)

// origin is where a row from the table stands.
type origin struct {
	xid  int64   // of the writing transaction, 0 if the row is older than that column
	upTo wal.LSN // every row that is read committed before it
}

// unmarked reads the outbox's rows that have no mark, of one topic or, with
// none named, of all, until take has enough. A key's events come in their
// order. All below the floor are known to have one.
func (r *reader) unmarked(ctx context.Context, floor int64, topic string, take func(*row, origin) (more bool, err error)) error {
	return r.rows(ctx, take, unmarkedQuery(floor), floor, topic)
}

// unmarkedEvent reads the row of one event, if it has no mark.
func (r *reader) unmarkedEvent(ctx context.Context, id uuid.UUID, take func(*row, origin) (more bool, err error)) error {
	return r.rows(ctx, take, `SELECT `+strings.Join(columnNames[:], ", ")+`, xid FROM waybill.outbox_events e
		WHERE id = $1 AND NOT EXISTS (SELECT FROM waybill.outbox_published p WHERE p.id = e.id)`, id)
}

func (r *reader) rows(ctx context.Context, take func(*row, origin) (more bool, err error), sql string, args ...any) error {
	conn, err := r.s.db.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("read unpublished events: %w", err)
	}
	defer conn.Release()
	rows, err := conn.Query(ctx, sql, append([]any{pgx.QueryResultFormats{pgx.BinaryFormatCode}}, args...)...)
	if err != nil {
		return fmt.Errorf("read unpublished events: %w", err)
	}
	defer rows.Close()
	var from origin
	for rows.Next() {
		if from.upTo == 0 { // the rows' snapshot is taken by now
			if from.upTo, err = currentLSN(ctx, r.s.db); err != nil {
				return err
			}
		}
		values := rows.RawValues()
		var one row
		copy(one[:], values)
		from.xid = int64at(values[len(one)])
		if more, err := take(&one, from); err != nil || !more {
			// There may be millions behind it, which Close would read.
			_ = conn.Conn().PgConn().Conn().Close()
			rows.Close()
			_ = conn.Conn().Close(ctx) // the pool must not take it for a good one
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read unpublished events: %w", err)
	}
	return nil
}

func currentLSN(ctx context.Context, db *pgxpool.Pool) (lsn wal.LSN, err error) {
	var text string
	err = db.QueryRow(ctx, `SELECT pg_current_wal_insert_lsn()::text`).Scan(&text)
	if err == nil {
		err = lsn.Scan(text)
	}
	if err != nil {
		return 0, fmt.Errorf("ask for the WAL's position: %w", err)
	}
	return lsn, nil
}

// An event goes where the highest id stands that its key has up to its
// sequence. Within a key that is the sequence's order, or the ids' where there
// is no sequence; between keys it is the ids'. Ids carry the clock of their
// writer; where two writers' clocks differ, a key's own sequence goes before it.
//
// A floor also means that every row from before the column xid has a mark.
func unmarkedQuery(floor int64) string {
	young := `xid >= $1`
	if floor == 0 {
		young = `$1::bigint = 0`
	}
	return `SELECT ` + strings.Join(columnNames[:], ", ") + `, xid FROM (
		SELECT *, max(id::text COLLATE "C") OVER (PARTITION BY topic, subject ORDER BY sequence, id) AS place
		FROM waybill.outbox_events e
		WHERE ` + young + ` AND ($2 = '' OR topic = $2)
			AND NOT EXISTS (SELECT FROM waybill.outbox_published p WHERE p.id = e.id)) unmarked
	ORDER BY place, sequence, id`
}
