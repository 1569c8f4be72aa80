package cdc

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
)

// publishedTable is a table of our publication.
type publishedTable struct {
	table    Table
	kind     string
	narrowed bool // not all of its changes are published
}

func (p *publishedTable) only() string { return only(p.table, p.kind) }

func (s *session) published(ctx context.Context, tx pgx.Tx) (map[string]*publishedTable, error) {
	// Filters and column lists came with version 15.
	rows, err := tx.Query(ctx, `SELECT n.nspname, c.relname, c.relkind::text,
			coalesce(to_jsonb(r)->>'prqual', to_jsonb(r)->>'prattrs') IS NOT NULL
			OR NOT (p.pubinsert AND p.pubupdate AND p.pubdelete AND p.pubtruncate AND p.pubviaroot)
		FROM pg_publication p JOIN pg_publication_rel r ON r.prpubid = p.oid
		JOIN pg_class c ON c.oid = r.prrelid JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE p.pubname = $1`, s.cfg.Publication)
	if err != nil {
		return nil, err
	}
	in := map[string]*publishedTable{}
	var p publishedTable
	_, err = pgx.ForEachRow(rows, []any{&p.table.Schema, &p.table.Name, &p.kind, &p.narrowed}, func() error {
		one := p
		in[p.table.String()] = &one
		return nil
	})
	return in, err
}

// apply brings publication and waybill.cdc_tables to what was found. That they
// change together is what makes a table complete: none is published for the
// first time without a snapshot being due.
func (s *session) apply(ctx context.Context, tx pgx.Tx, found []finding) error {
	for _, f := range found {
		if f.withhold {
			if err := exec(ctx, tx, `ALTER PUBLICATION `+s.publication()+` DROP TABLE `+f.in.only()); err != nil {
				return err
			}
		}
	}
	if slices.ContainsFunc(found, func(f finding) bool { return f.publish && f.withhold }) {
		if err := exec(ctx, tx, `ALTER PUBLICATION `+s.publication()+` SET (`+publicationOptions+`)`); err != nil {
			return err
		}
	}
	for i := range found {
		f := &found[i]
		if f.gone != nil {
			if err := exec(ctx, tx, `DELETE FROM waybill.cdc_tables WHERE slot = $1 AND name = $2`, s.cfg.Slot, *f.gone); err != nil {
				return err
			}
			continue
		}
		if f.publish {
			s.add(ctx, tx, f)
		}
		if err := keep(ctx, tx, s.cfg.Slot, f.state, f.reason, f.sweep); err != nil {
			return err
		}
	}
	return nil
}

// add puts a table into the publication. One that cannot be, since it is not
// ours or somebody holds its lock, keeps no other from it.
func (s *session) add(ctx context.Context, tx pgx.Tx, f *finding) {
	err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { // a savepoint
		return exec(ctx, tx, `ALTER PUBLICATION `+s.publication()+` ADD TABLE `+only(f.Table, f.facts.kind))
	})
	if err != nil {
		f.suspend("it cannot be added to the publication: " + err.Error())
	}
}

func exec(ctx context.Context, tx pgx.Tx, sql string, args ...any) error {
	if _, err := tx.Exec(ctx, sql, args...); err != nil {
		return fmt.Errorf("%s: %w", sql, err)
	}
	return nil
}

// only leaves out tables that inherit from this one, which are tables of their
// own, and leaves partitions in.
func only(t Table, kind string) string {
	if kind == "r" {
		return "ONLY " + t.sql()
	}
	return t.sql()
}
