package tables

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/outbox/archive"
	"github.com/waybillhq/waybill/pg/daypart"
)

// Strays are rows of the default partition that no day's partition will take
// in any more: a clock that was far behind, or far ahead, dated them. Those of
// old days leave when their day has; those of a far future, once they have been
// published for as long as others are kept.

// archiveStrays copies strays into files: one range of ids is one file, and
// there is one set of them a day, so that a writer whose clock is always wrong
// does not fill the folder.
func (o *round) archiveStrays(ctx context.Context) {
	label := archive.StrayPrefix + o.today.Format(time.DateOnly)
	if err := o.tryArchiveStrays(ctx, label); err != nil {
		if ctx.Err() != nil {
			o.fail(err)
			return
		}
		o.archiveFailed(ctx, label, err)
	}
}

func (o *round) tryArchiveStrays(ctx context.Context, label string) error {
	fallback, err := o.fallback(ctx, eventsTable)
	if err != nil {
		return err
	}
	if o.stray, err = o.hasRows(ctx, fallback); err != nil || !o.stray {
		return err
	}
	if err := o.tellUnmarkedStrays(ctx, fallback); err != nil || o.cfg.Discard {
		return err
	}
	if err := o.findStrayFiles(ctx, fallback); err != nil || len(o.strays) > 0 {
		return err // what is archived leaves first
	}
	if today, err := archive.Of(o.cfg.Dir, label); err != nil || len(today) > 0 {
		return err
	}
	for _, r := range o.strayRanges() {
		src := archive.Source{
			Table: fallback, Label: label, From: r.from, To: r.to, SkipUnmarked: true, PublishedBefore: r.publishedBefore,
		}
		res, err := o.copyOut(ctx, src, nil)
		if err != nil {
			return err
		}
		if res.File == nil {
			continue
		}
		if err := o.register(ctx, *res.File, nil, fallback); err != nil {
			return err
		}
		o.strays = append(o.strays, *res.File)
		o.at("stray registered")
	}
	return nil
}

func (o *round) fallback(ctx context.Context, t daypart.Table) (daypart.Table, error) {
	fallback, _, ok, err := daypart.Default(ctx, o.db, t)
	if err == nil && !ok {
		err = fmt.Errorf("table %s has no default partition: run the migrations, or make it: CREATE TABLE %[1]s_default PARTITION OF %[1]s DEFAULT", t.Name)
	}
	return fallback, err
}

// strayRange is ids from from up to to that no partition will take in.
type strayRange struct {
	from, to        uuid.UUID // to: zero for no bound
	publishedBefore time.Time // zero: whenever
}

func (o *round) strayRanges() []strayRange {
	return []strayRange{
		{to: daypart.Floor(o.cutoff)},
		{from: daypart.Floor(o.ahead), publishedBefore: o.now.AddDate(0, 0, -o.cfg.KeepDays)},
	}
}

func (o *round) tellUnmarkedStrays(ctx context.Context, fallback daypart.Table) error {
	var n int
	err := o.db.QueryRow(ctx, `SELECT count(*) FROM (SELECT FROM `+ident(fallback)+withoutMark+` AND e.id < $1 LIMIT $2) u`,
		daypart.Floor(o.cutoff), manyUnmarked).Scan(&n)
	if err == nil && n > 0 {
		o.keep("default", fmt.Sprintf("%d old events in the default partition are not published", n))
	}
	return err
}

// findStrayFiles finds files whose rows may still be there: the process that
// wrote them died, or was not let.
func (o *round) findStrayFiles(ctx context.Context, fallback daypart.Table) error {
	paths, err := archive.Strays(o.cfg.Dir)
	if err != nil {
		return err
	}
	for _, path := range paths {
		f, err := archive.Stat(path)
		if err != nil {
			o.fail(err) // it has nobody's rows but its own: the table's are written anew
			continue
		}
		if err := o.register(ctx, f, nil, fallback); err != nil {
			return err
		}
		var due bool
		err = o.db.QueryRow(ctx, `SELECT EXISTS (SELECT FROM waybill.outbox_archives WHERE digest = $1 AND dropped_at IS NULL)`,
			f.Digest[:]).Scan(&due)
		if err != nil {
			return err
		}
		if !due {
			continue
		}
		if _, err := archive.Verify(ctx, path); err != nil {
			return err
		}
		o.strays = append(o.strays, f)
	}
	return nil
}

// removeStrays takes the rows that files have out of the default partition.
func (o *round) removeStrays(ctx context.Context) {
	fallback, err := o.fallback(ctx, eventsTable)
	if err != nil {
		o.fail(err)
		return
	}
	if o.cfg.Discard {
		o.discardStrays(ctx, fallback)
		return
	}
	for _, f := range o.strays {
		if err := o.removeFile(ctx, fallback, f); err != nil {
			o.fail(fmt.Errorf("remove events of %s: %w", f.Name(), err))
			continue
		}
		o.report.Emptied = append(o.report.Emptied, f.Label)
		o.log.InfoContext(ctx, "stray events left the outbox", "events", f.Events, "file", f.Path)
	}
}

// Bounds of what one transaction removes.
const (
	removeEvents = 500
	removeBytes  = 8 << 20
)

func (o *round) removeFile(ctx context.Context, fallback daypart.Table, f archive.File) error {
	a, err := archive.OpenFiles(f.Path)
	if err != nil {
		return err
	}
	var batch []archive.Event
	size := 0
	for e, err := range a.Events(uuid.Nil, uuid.Nil) {
		if err != nil {
			return err
		}
		batch, size = append(batch, e), size+len(e.Body)
		if len(batch) == removeEvents || size >= removeBytes {
			if err := o.removeBatch(ctx, fallback, batch); err != nil {
				return err
			}
			batch, size = batch[:0], 0
		}
	}
	return o.removeBatch(ctx, fallback, batch, f)
}

// removeBatch deletes events together with their marks, each compared with its
// copy while nobody can change it. With the last batch of a file, which may be
// empty, the file is noted as done.
func (o *round) removeBatch(ctx context.Context, fallback daypart.Table, batch []archive.Event, done ...archive.File) error {
	ids := make([]uuid.UUID, len(batch))
	copies := make(map[uuid.UUID]*archive.Event, len(batch))
	for i := range batch {
		ids[i], copies[batch[i].ID] = batch[i].ID, &batch[i]
	}
	err := pgx.BeginFunc(ctx, o.db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SET LOCAL lock_timeout = '1s'`); err != nil {
			return err
		}
		rows, err := archive.Lock(ctx, tx, fallback, ids)
		if err != nil {
			return err
		}
		for i := range rows {
			if !archive.Same(&rows[i], copies[rows[i].ID]) {
				return fmt.Errorf("event %s was changed after it was archived: put its row right, or move the file away", rows[i].ID)
			}
		}
		if err := removeIDs(ctx, tx, fallback, ids); err != nil {
			return err
		}
		return o.markDropped(ctx, tx, done)
	})
	if err == nil {
		o.at("strays removed")
	}
	return err
}

func removeIDs(ctx context.Context, tx pgx.Tx, fallback daypart.Table, ids []uuid.UUID) error {
	if _, err := tx.Exec(ctx, `DELETE FROM `+ident(fallback)+` WHERE id = ANY($1)`, ids); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `DELETE FROM waybill.outbox_published WHERE id = ANY($1)`, ids)
	return err
}

// discardStrays deletes strays without a copy.
func (o *round) discardStrays(ctx context.Context, fallback daypart.Table) {
	total := 0
	for _, r := range o.strayRanges() {
		for {
			n, err := o.discardBatch(ctx, fallback, r)
			total += n
			if err != nil {
				o.fail(fmt.Errorf("remove stray events: %w", err))
				return
			}
			if n < removeEvents {
				break
			}
		}
	}
	if total > 0 {
		o.report.Emptied = append(o.report.Emptied, "default")
		o.log.InfoContext(ctx, "stray events left the outbox", "events", total)
	}
}

func (o *round) discardBatch(ctx context.Context, fallback daypart.Table, r strayRange) (n int, err error) {
	var to *uuid.UUID
	if r.to != uuid.Nil {
		to = &r.to
	}
	var before *time.Time
	if !r.publishedBefore.IsZero() {
		before = &r.publishedBefore
	}
	err = pgx.BeginFunc(ctx, o.db, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT id FROM `+ident(fallback)+` e
			WHERE id >= $1 AND ($2::uuid IS NULL OR id < $2) AND EXISTS (SELECT FROM waybill.outbox_published p
				WHERE p.id = e.id AND ($3::timestamptz IS NULL OR p.published_at < $3))
			LIMIT $4`, r.from, to, before, removeEvents)
		if err != nil {
			return err
		}
		ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
		if err != nil || len(ids) == 0 {
			return err
		}
		n = len(ids)
		return removeIDs(ctx, tx, fallback, ids)
	})
	return n, err
}
