package daypart

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Part is the partition of one UTC day.
type Part struct {
	Table
	Day time.Time // its midnight, UTC
}

// Floor is the smallest id that lies in the partition.
func (p Part) Floor() uuid.UUID { return Floor(p.Day) }

// Ceiling is the smallest id above the partition.
func (p Part) Ceiling() uuid.UUID { return Floor(p.Day.AddDate(0, 0, 1)) }

// Floor is the smallest UUIDv7 of the UTC day of t: the bound of its partition.
func Floor(t time.Time) uuid.UUID { return uuid.MustParse(dayOf(t).floor()) }

// Day is the midnight, UTC, of the day t lies in.
func Day(t time.Time) time.Time { return dayOf(t).start }

// rangeBounds are the two ids of a range partition, as the server prints them.
var rangeBounds = regexp.MustCompile(`^FOR VALUES FROM \('([0-9a-f-]{36})'\) TO \('([0-9a-f-]{36})'\)$`)

// Parts lists the partitions of t that hold exactly one day, oldest first. The
// bounds decide, not the names. Others, as the default partition or one that
// somebody made for a month, are left out.
func Parts(ctx context.Context, db DB, t Table) ([]Part, error) {
	rows, err := db.Query(ctx, `SELECT n.nspname::text, c.relname::text, pg_catalog.pg_get_expr(c.relpartbound, c.oid)
		FROM pg_catalog.pg_inherits i
		JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
		JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		WHERE i.inhparent = $1::text::regclass
		ORDER BY 3, 2`, t.ident())
	if err != nil {
		return nil, fmt.Errorf("list partitions of %s: %w", t.ident(), err)
	}
	var out []Part
	var p Part
	var bounds *string
	_, err = pgx.ForEachRow(rows, []any{&p.Schema, &p.Name, &bounds}, func() error {
		if day, ok := dayOfBounds(bounds); ok {
			out = append(out, Part{p.Table, day})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list partitions of %s: %w", t.ident(), err)
	}
	return out, nil
}

// dayOfBounds is the day that bounds enclose. A partition that is just being
// dropped has none.
func dayOfBounds(bounds *string) (time.Time, bool) {
	if bounds == nil {
		return time.Time{}, false
	}
	m := rangeBounds.FindStringSubmatch(*bounds)
	if m == nil {
		return time.Time{}, false
	}
	from, err := uuid.Parse(m[1])
	if err != nil {
		return time.Time{}, false
	}
	ms := int64(from[0])<<40 | int64(from[1])<<32 | int64(from[2])<<24 | int64(from[3])<<16 | int64(from[4])<<8 | int64(from[5])
	d := dayOf(time.UnixMilli(ms))
	return d.start, m[1] == d.floor() && m[2] == d.next().floor()
}

// querier is a pool, a connection or a transaction.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Default is the default partition of t and the column t is ranged over, false
// if it has none.
func Default(ctx context.Context, db querier, t Table) (fallback Table, column string, ok bool, err error) {
	err = db.QueryRow(ctx, `SELECT n.nspname::text, c.relname::text, a.attname::text
		FROM pg_catalog.pg_partitioned_table p
		JOIN pg_catalog.pg_class c ON c.oid = p.partdefid
		JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		JOIN pg_catalog.pg_attribute a ON a.attrelid = p.partrelid AND a.attnum = p.partattrs[0]
		WHERE p.partrelid = $1::text::regclass`, t.ident()).Scan(&fallback.Schema, &fallback.Name, &column)
	if errors.Is(err, pgx.ErrNoRows) {
		return Table{}, "", false, nil
	}
	if err != nil {
		return Table{}, "", false, fmt.Errorf("find default partition: %w", err)
	}
	return fallback, column, true, nil
}
