package tables

import (
	"context"
	"errors"
	"fmt"
	"math/big"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/outbox/archive"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/daypart"
)

// archiveDay sees to it that every event of a day is in the archive.
func (o *round) archiveDay(ctx context.Context, d *day) error {
	hasEvents, err := o.hasRows(ctx, d.events.Table)
	if err != nil {
		return err
	}
	d.found = hasEvents
	if d.marks != nil && !d.found {
		if d.found, err = o.hasRows(ctx, d.marks.Table); err != nil {
			return err
		}
	}
	if !d.found {
		return nil
	}
	if unmarked, err := o.unmarked(ctx, d); err != nil || unmarked != "" {
		if unmarked != "" {
			o.keep(d.label(), unmarked)
		}
		return err
	}
	if hasEvents && !o.cfg.Discard {
		if err := o.write(ctx, d); err != nil {
			return err
		}
	}
	d.ready = true
	return nil
}

func (o *round) hasRows(ctx context.Context, t daypart.Table) (rows bool, err error) {
	err = o.db.QueryRow(ctx, `SELECT EXISTS (SELECT FROM `+ident(t)+`)`).Scan(&rows)
	return rows, err
}

func ident(t daypart.Table) string { return pgx.Identifier{t.Schema, t.Name}.Sanitize() }

const withoutMark = ` e WHERE NOT EXISTS (SELECT FROM waybill.outbox_published p WHERE p.id = e.id)`

// unmarked tells of events of the day that are not published, in words.
func (o *round) unmarked(ctx context.Context, d *day) (why string, err error) {
	var n int
	err = o.unhurried(ctx, func(tx pgx.Tx) error {
		var some bool
		// First whether there is any: the planner would take a count with a
		// limit for a reason to look each mark up by itself.
		if err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM `+ident(d.events.Table)+withoutMark+`)`).Scan(&some); err != nil || !some {
			return err
		}
		return tx.QueryRow(ctx, `SELECT count(*) FROM (SELECT FROM `+ident(d.events.Table)+withoutMark+` LIMIT $1) u`, manyUnmarked).Scan(&n)
	})
	switch {
	case err != nil:
		return "", fmt.Errorf("look for unpublished events: %w", err)
	case n == 0:
		return "", nil
	case n == manyUnmarked:
		return fmt.Sprintf("at least %d of its events are not published", n), nil
	}
	return fmt.Sprintf("%d of its events are not published", n), nil
}

const manyUnmarked = 1000

// unhurried runs work in a transaction without the time limit that the
// operator may have set for statements: those on a large day take a while.
func (o *round) unhurried(ctx context.Context, work func(pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, o.db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SET LOCAL statement_timeout = 0`); err != nil {
			return err
		}
		return work(tx)
	})
}

// write writes what the archive does not have of the day yet, which is all of
// it unless a process died, or rows came late.
func (o *round) write(ctx context.Context, d *day) error {
	have, err := o.soundFiles(ctx, d.label())
	if err != nil {
		return err
	}
	src := archive.Source{Table: d.events.Table, Label: d.label(), From: d.events.Floor(), To: d.events.Ceiling()}
	if d.written, err = o.copyOut(ctx, src, have); err != nil {
		return err
	}
	d.files = have
	if f := d.written.File; f != nil {
		d.files = append(d.files, *f)
	}
	for _, f := range d.files {
		if err := o.register(ctx, f, &d.date, d.events.Table); err != nil {
			return err
		}
	}
	o.at("registered")
	return nil
}

// soundFiles are the files of a label that prove whole. One that does not is
// told and passed over: what it should hold is still in the table, and is
// written anew.
func (o *round) soundFiles(ctx context.Context, label string) ([]archive.File, error) {
	paths, err := archive.Of(o.cfg.Dir, label)
	if err != nil {
		return nil, err
	}
	var out []archive.File
	for _, path := range paths {
		f, err := archive.Verify(ctx, path)
		var damaged *archive.DamagedError
		switch {
		case errors.As(err, &damaged) && ctx.Err() == nil:
			o.fail(err)
			o.note(ctx, "archive damaged", damaged.Path, err)
		case err != nil:
			return nil, err
		default:
			out = append(out, f)
		}
	}
	return out, nil
}

// emptyDays takes out what is archived.
func (o *round) emptyDays(ctx context.Context) {
	for _, d := range o.days {
		if !d.ready {
			continue
		}
		err := o.emptyDay(ctx, d)
		switch {
		case err == nil:
			o.report.Emptied = append(o.report.Emptied, d.label())
			o.log.InfoContext(ctx, "a day left the outbox", "day", d.label(), "events", d.written.Rows, "archived", !o.cfg.Discard)
		case errors.Is(err, daypart.ErrBusy) || pg.Conflict(err):
			o.keep(d.label(), "a transaction that wrote or read it is still open")
		case errors.Is(err, errChanged):
			o.keep(d.label(), err.Error())
		default:
			o.fail(fmt.Errorf("empty %s: %w", d.label(), err))
		}
	}
}

var errChanged = errors.New("events came late; the next round archives them")

// emptyDay empties events and marks at once: there is no moment at which an
// event is there and its mark is not. The last look is taken while nobody can
// write to the day.
func (o *round) emptyDay(ctx context.Context, d *day) error {
	parts := []daypart.Table{d.events.Table}
	if d.marks != nil {
		parts = append(parts, d.marks.Table)
	}
	return daypart.Empty(ctx, o.db, parts, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SET LOCAL statement_timeout = 0`); err != nil {
			return err
		}
		if !o.cfg.Discard {
			if err := unchanged(ctx, tx, d); err != nil {
				return err
			}
		}
		var unmarked bool
		if err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM `+ident(d.events.Table)+withoutMark+`)`).Scan(&unmarked); err != nil {
			return err
		}
		if unmarked {
			return errChanged
		}
		if d.marks == nil {
			_, err := tx.Exec(ctx, `DELETE FROM waybill.outbox_published WHERE id >= $1 AND id < $2`, d.events.Floor(), d.events.Ceiling())
			if err != nil {
				return err
			}
		}
		if err := o.markDropped(ctx, tx, d.files); err != nil {
			return err
		}
		o.at("emptying")
		return nil
	})
}

// unchanged compares the day with what was read of it for the archive.
func unchanged(ctx context.Context, tx pgx.Tx, d *day) error {
	var rows int64
	var text string
	err := tx.QueryRow(ctx, `SELECT count(*), coalesce(sum(`+archive.RowHash+`), 0)::text FROM `+ident(d.events.Table)+` e`).Scan(&rows, &text)
	if err != nil {
		return err
	}
	sum, ok := new(big.Int).SetString(text, 10)
	if !ok {
		return fmt.Errorf("fingerprint %q is no number", text)
	}
	if rows != d.written.Rows || modulo64(sum) != d.written.Fingerprint {
		return errChanged
	}
	return nil
}

// modulo64 is n modulo 2^64, as the sum of int64s that wraps.
func modulo64(n *big.Int) int64 {
	var m big.Int
	m.Mod(n, new(big.Int).Lsh(big.NewInt(1), 64)) // never negative
	return int64(m.Uint64())
}
