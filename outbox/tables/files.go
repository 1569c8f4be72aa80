package tables

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/outbox/archive"
	"github.com/waybillhq/waybill/pg/daypart"
)

// Archived is a file of the archive as the database knows it.
type Archived struct {
	File      string     `json:"file"`  // below the archive's folder
	Place     string     `json:"place"` // host and folder it was written to
	Day       *time.Time `json:"day"`   // nil: events of any day, from the default partition
	Events    int64      `json:"events"`
	Bytes     int64      `json:"bytes"`
	Digest    string     `json:"digest"`
	FirstID   string     `json:"first_id"`
	LastID    string     `json:"last_id"`
	WrittenAt time.Time  `json:"written_at"`
	DroppedAt *time.Time `json:"dropped_at"` // nil: its events are still in the outbox
}

// querier is a pool, a connection or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Archives lists the files of the archive, by their first event.
func Archives(ctx context.Context, db querier) ([]Archived, error) {
	rows, err := db.Query(ctx, `SELECT file, place, day::timestamptz, events, bytes, encode(digest, 'hex'),
		first_id::text, last_id::text, written_at, dropped_at
		FROM waybill.outbox_archives ORDER BY first_id, file, digest`)
	if err != nil {
		return nil, fmt.Errorf("list archive: %w", err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Archived])
	if err != nil {
		return nil, fmt.Errorf("list archive: %w", err)
	}
	return out, nil
}

// copyOut writes to the archive and tells how it goes.
func (o *round) copyOut(ctx context.Context, src archive.Source, have []archive.File) (archive.Result, error) {
	taken, err := o.names(ctx, src.Label)
	if err != nil {
		return archive.Result{}, err
	}
	told := time.Now()
	res, err := archive.Write(ctx, o.db, src, o.cfg.Dir, archive.Options{
		Archived: have,
		Taken:    func(name string) bool { return taken[name] },
		Progress: func(step archive.Step, rows int64) {
			if step == archive.Writing && time.Since(told) > 10*time.Second {
				told = time.Now()
				o.log.InfoContext(ctx, "archiving the outbox", "what", src.Label, "events", rows)
			}
			o.at(string(step))
		},
	})
	if err == nil && res.File != nil {
		o.report.Archived = append(o.report.Archived, *res.File)
		o.metrics.wrote(res.File, time.Now())
		o.log.InfoContext(ctx, "archived events of the outbox", "file", res.File.Path, "events", res.File.Events, "bytes", res.File.Bytes)
	}
	return res, err
}

// names are those of a label that the database knows, of this host's archive or
// of another's: files of two hosts can then lie in one folder.
func (o *round) names(ctx context.Context, label string) (map[string]bool, error) {
	rows, err := o.db.Query(ctx, `SELECT file FROM waybill.outbox_archives WHERE starts_with(file, $1)`, archive.Folder+"/"+label+".")
	if err != nil {
		return nil, err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, err
	}
	out := make(map[string]bool, len(names))
	for _, n := range names {
		out[n] = true
	}
	return out, nil
}

// register notes a file, unless it is noted already or holds nothing of t: then
// it came from another database, or its events left long ago.
func (o *round) register(ctx context.Context, f archive.File, day *time.Time, t daypart.Table) error {
	_, err := o.db.Exec(ctx, `INSERT INTO waybill.outbox_archives (digest, file, place, day, events, bytes, first_id, last_id)
		SELECT $1::bytea, $2::text, $3::text, $4::date, $5::bigint, $6::bigint, $7::uuid, $8::uuid
		WHERE EXISTS (SELECT FROM `+ident(t)+` WHERE id = $7)
		ON CONFLICT (digest) DO NOTHING`,
		f.Digest[:], f.Name(), Place(filepath.Dir(filepath.Dir(f.Path))), day, f.Events, f.Bytes, f.First, f.Last)
	if err != nil {
		return fmt.Errorf("note archive file %s: %w", f.Name(), err)
	}
	return nil
}

// Place is how this host names an archive's folder in [Archived].
func Place(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	host, err := os.Hostname()
	if err != nil {
		return dir
	}
	return host + ":" + dir
}

// markDropped notes that the events of files have left.
func (o *round) markDropped(ctx context.Context, tx pgx.Tx, files []archive.File) error {
	digests := make([][]byte, len(files))
	for i := range files {
		digests[i] = files[i].Digest[:]
	}
	_, err := tx.Exec(ctx, `UPDATE waybill.outbox_archives SET dropped_at = now() WHERE digest = ANY($1) AND dropped_at IS NULL`, digests)
	return err
}
