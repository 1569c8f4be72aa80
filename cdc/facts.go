package cdc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// facts is what the catalog says of a table just now. The stream may be at an
// earlier point.
type facts struct {
	oid       uint32
	kind      string // relkind
	logged    bool
	identity  string // replica identity; of a partitioned table, f if all partitions have it
	keys      []string
	keyTypes  []string
	immediate bool     // the primary key is not deferrable
	index     []string // columns of the replica identity index
	columns   []string
	numbers   []int    // of columns, which are not used twice
	types     []string // OID, and the modifier where another one changes values
	filled    []bool   // a row from before the column existed may have a value in it
	attrs     int      // numbers given so far
	generated bool     // the primary key has a generated column
	deaf      string   // a partition without replica identity
	hidden    bool     // row-level security binds us
	admitted  bool     // and a policy asks for our setting
	rows      *int64   // an estimate
}

// The estimate is the planner's: rows by page at the last ANALYZE, times the
// pages of now.
const factsQuery = `
	WITH leaf AS (
		SELECT l.* FROM pg_class l WHERE l.relkind <> 'p' AND (l.oid = $3 OR l.oid IN (SELECT relid FROM pg_partition_tree($3))))
	SELECT c.relkind::text, c.relpersistence = 'p',
		CASE WHEN c.relkind <> 'p' THEN c.relreplident::text WHEN (SELECT bool_and(relreplident = 'f') FROM leaf) THEN 'f' ELSE 'd' END,
		ARRAY(SELECT a.attname::text FROM unnest(pk.indkey::int2[]) WITH ORDINALITY k (n, place)
			JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.n WHERE k.place <= pk.indnkeyatts ORDER BY k.place),
		ARRAY(SELECT quote_ident(tn.nspname) || '.' || quote_ident(t.typname) FROM unnest(pk.indkey::int2[]) WITH ORDINALITY k (n, place)
			JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.n
			JOIN pg_type t ON t.oid = a.atttypid JOIN pg_namespace tn ON tn.oid = t.typnamespace
			WHERE k.place <= pk.indnkeyatts ORDER BY k.place),
		coalesce(pk.indimmediate, false),
		ARRAY(SELECT a.attname::text FROM pg_index i JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY(i.indkey)
			WHERE i.indrelid = c.oid AND i.indisreplident),
		ARRAY(SELECT a.attname::text FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
			AND a.attgenerated = '' ORDER BY a.attnum),
		ARRAY(SELECT a.attnum::int FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
			AND a.attgenerated = '' ORDER BY a.attnum),
		c.relnatts::int,
		EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum = ANY(pk.indkey) AND a.attgenerated <> ''),
		ARRAY(SELECT a.atttypid || CASE WHEN a.atttypmod = -1 OR a.atttypid IN ('varchar'::regtype, 'varbit'::regtype) THEN '' ELSE ' ' || a.atttypmod END
			FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' ORDER BY a.attnum),
		ARRAY(SELECT a.atthasdef OR a.atthasmissing OR a.attidentity <> '' FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0
			AND NOT a.attisdropped AND a.attgenerated = '' ORDER BY a.attnum),
		coalesce((SELECT min(oid::regclass::text) FROM leaf WHERE relreplident = 'n'), ''),
		row_security_active(c.oid),
		EXISTS (SELECT FROM pg_policies p WHERE p.schemaname = n.nspname AND p.tablename = c.relname
			AND p.cmd IN ('SELECT', 'ALL') AND p.permissive = 'PERMISSIVE' AND p.qual LIKE '%` + SnapshotSetting + `%'),
		(SELECT sum(reltuples / nullif(relpages, 0) * (pg_relation_size(oid) / current_setting('block_size')::int))::bigint
			FROM leaf HAVING bool_and(relpages > 0))
	FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	LEFT JOIN pg_index pk ON pk.indrelid = c.oid AND pk.indisprimary AND pk.indisvalid
	WHERE c.oid = $3 AND n.nspname = $1 AND c.relname = $2`

// factsOf is nil if there is no such table.
func factsOf(ctx context.Context, db querier, t Table) (*facts, error) {
	f := &facts{}
	err := db.QueryRow(ctx, `SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = $1 AND c.relname = $2`, t.Schema, t.Name).Scan(&f.oid)
	if err == nil {
		err = db.QueryRow(ctx, factsQuery, t.Schema, t.Name, f.oid).Scan(&f.kind, &f.logged, &f.identity, &f.keys, &f.keyTypes,
			&f.immediate, &f.index, &f.columns, &f.numbers, &f.attrs, &f.generated, &f.types, &f.filled, &f.deaf, &f.hidden, &f.admitted, &f.rows)
	}
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("look at table %s: %w", t, err)
	}
	return f, nil
}

// problem says what keeps the changes of t from being published, and the mend;
// "" if nothing does. A table without replica identity must not even enter the
// publication: Postgres would refuse the application's updates of it.
func (f *facts) problem(t Table) string {
	switch {
	case f == nil:
		return fmt.Sprintf("there is no table %s in this database: create it, or take it off the list", t)
	case f.kind != "r" && f.kind != "p":
		return fmt.Sprintf("%s is not a table: only tables have changes in the WAL", t)
	case !f.logged:
		return fmt.Sprintf("the changes of %[1]s are not in the WAL: ALTER TABLE %[2]s SET LOGGED", t, t.sql())
	case len(f.keys) == 0:
		return fmt.Sprintf("%[1]s has no primary key, so that its events would have no key: ALTER TABLE %[2]s ADD PRIMARY KEY (...)", t, t.sql())
	case f.generated:
		return fmt.Sprintf("the primary key of %s has a generated column, which is not in the stream: generate the value elsewhere, or take another key", t)
	case f.identity == "n" || f.deaf != "":
		return fmt.Sprintf("%s has replica identity nothing: ALTER TABLE %s REPLICA IDENTITY FULL, or DEFAULT", t, or(f.deaf, t.sql()))
	case f.identity == "d" && !f.immediate:
		return fmt.Sprintf("the primary key of %[1]s is deferrable, which is no replica identity: ALTER TABLE %[2]s REPLICA IDENTITY FULL", t, t.sql())
	case f.identity == "i" && len(without(f.keys, f.index)) > 0:
		return fmt.Sprintf("the replica identity index of %[1]s has not all of the primary key: ALTER TABLE %[2]s REPLICA IDENTITY FULL, or DEFAULT", t, t.sql())
	case f.hidden && !f.admitted:
		return fmt.Sprintf("row-level security hides rows of %s from a snapshot: have a policy for SELECT let the setting %s = 'on' through, or give the role BYPASSRLS",
			t, SnapshotSetting)
	}
	if missing := slices.DeleteFunc(slices.Clone(f.keys), t.allows); len(missing) > 0 {
		return fmt.Sprintf("the allow-list of %s lacks %s of the primary key, which is the key of its events: add it", t, strings.Join(missing, ", "))
	}
	return ""
}

// signature names a column so that whatever changes its values without events
// changes the signature too.
func (f *facts) signature(i int) string {
	return fmt.Sprintf("%d %s %s", f.numbers[i], f.columns[i], f.types[i])
}

// published are the columns that t lets out.
func (f *facts) published(t Table) []string {
	out := []string{}
	for i, c := range f.columns {
		if t.allows(c) {
			out = append(out, f.signature(i))
		}
	}
	return out
}

// key is the primary key's columns, each with its type.
func (f *facts) key() []string {
	out := make([]string, len(f.keys))
	for i, k := range f.keys {
		out[i] = k + " " + f.keyTypes[i]
	}
	return out
}

// grewEmpty tells whether the columns that are published now and were not
// before can only be null in the rows of before, and are told so. Others were
// renamed or retyped without an event for each row, or had values that nobody
// was told, or have the name of one that did.
func (f *facts) grewEmpty(t Table, before *state) bool {
	for i, c := range f.columns {
		if !t.allows(c) || slices.Contains(before.Columns, f.signature(i)) {
			continue
		}
		named := func(b string) bool {
			_, b, _ = strings.Cut(strings.TrimPrefix(b, gonePrefix), " ")
			return strings.HasPrefix(b, c+" ")
		}
		if f.filled[i] || f.numbers[i] <= before.Attributes || slices.ContainsFunc(before.Columns, named) {
			return false
		}
	}
	return true
}

// gonePrefix marks, among the columns that are published, one that is not any
// more: records that have its values are still there.
const gonePrefix = "gone "

// gone are those of before that are not among now.
func gone(before, now []string) (out []string) {
	for _, b := range before {
		switch {
		case strings.HasPrefix(b, gonePrefix):
			out = append(out, b)
		case !slices.Contains(now, b):
			out = append(out, gonePrefix+b)
		}
	}
	return out
}

// without is all of list that is not in other.
func without(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(other, s) })
}

func or(s, otherwise string) string {
	if s != "" {
		return s
	}
	return otherwise
}
