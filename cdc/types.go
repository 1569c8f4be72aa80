package cdc

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// columnType is how the values of a column are carried.
type columnType struct {
	kind  kind
	array bool
	name  string // as Postgres calls it, domains being their base: numeric, shop.mood[]
}

// unknownType stands for a type that is no longer in the catalog.
var unknownType = columnType{kindString, false, "unknown"}

// kinds are the types that Avro has something better than text for. Not among
// them: numeric, which may be NaN and whose precision is not part of the
// type; enums, which Postgres lets grow at any time, when an Avro enum would
// make each new label a break; intervals, which are months, days and
// microseconds.
var kinds = map[uint32]kind{
	pgtype.BoolOID: kindBoolean, pgtype.Int2OID: kindInt, pgtype.Int4OID: kindInt, pgtype.Int8OID: kindLong,
	pgtype.OIDOID: kindLong, pgtype.Float4OID: kindFloat, pgtype.Float8OID: kindDouble, pgtype.ByteaOID: kindBytes,
	pgtype.UUIDOID: kindUUID, pgtype.DateOID: kindDate, pgtype.TimeOID: kindTime,
	pgtype.TimestampOID: kindTimestamp, pgtype.TimestamptzOID: kindTimestampTZ,
}

// avro is the type of the column's field. An array that is not one list from 1
// on, which the type of a column does not rule out, comes as its text.
func (c columnType) avro() string {
	if c.array {
		return `["null",{"type":"array","items":["null",` + avroTypes[c.kind] + `]},"string"]`
	}
	return `["null",` + avroTypes[c.kind] + `]`
}

// Branches of the union in avro.
const (
	branchNull = iota
	branchValue
	branchText
)

// append adds a value under its branch of the union. It is false, with b as it
// was, for one that cannot be carried.
func (c columnType) append(b, text []byte) ([]byte, bool) {
	before := len(b)
	b = appendLong(b, branchValue)
	var ok bool
	if c.array {
		b, ok = c.kind.appendArray(b, text)
	} else {
		b, ok = c.kind.append(b, text)
	}
	switch {
	case ok:
		return b, true
	case c.array:
		return appendString(appendLong(b[:before], branchText), text), true
	}
	return b[:before], false
}

// typesQuery follows domains to their base and arrays to their items. An array
// type is one that its item's type knows; int2vector and its like are not, and
// print otherwise.
const typesQuery = `
	WITH RECURSIVE step (asked, oid, is_array) AS (
		SELECT oid, oid, false FROM pg_type WHERE oid = ANY($1)
		UNION ALL
		SELECT s.asked, CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.typelem END, s.is_array OR t.typtype <> 'd'
		FROM step s JOIN pg_type t ON t.oid = s.oid LEFT JOIN pg_type item ON item.oid = t.typelem
		WHERE t.typtype = 'd' OR (item.typarray = t.oid AND item.typdelim = ',' AND NOT s.is_array))
	SELECT DISTINCT ON (asked) asked, s.oid, is_array, CASE nspname WHEN 'pg_catalog' THEN '' ELSE nspname || '.' END || typname
	FROM step s JOIN pg_type t ON t.oid = s.oid JOIN pg_namespace n ON n.oid = t.typnamespace
	WHERE t.typtype <> 'd' ORDER BY asked, is_array DESC`

// querier is a pool, a connection or a transaction.
type querier interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// types looks types up in the catalog, each once: what a type is does not
// change while it has its OID.
type types map[uint32]columnType

func (known types) lookUp(ctx context.Context, db querier, oids []uint32) error {
	missing := slices.DeleteFunc(slices.Clone(oids), func(oid uint32) bool {
		_, ok := known[oid]
		return ok
	})
	if len(missing) == 0 {
		return nil
	}
	rows, err := db.Query(ctx, typesQuery, missing)
	if err != nil {
		return fmt.Errorf("look up types: %w", err)
	}
	var asked, base uint32
	var c columnType
	_, err = pgx.ForEachRow(rows, []any{&asked, &base, &c.array, &c.name}, func() error {
		c.kind = kinds[base] // kindString if there is none
		if c.array {
			c.name += "[]"
		}
		known[asked] = c
		return nil
	})
	if err != nil {
		return fmt.Errorf("look up types: %w", err)
	}
	return nil
}

func (known types) of(oid uint32) columnType {
	if c, ok := known[oid]; ok {
		return c
	}
	return unknownType
}
