package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/twmb/avro/ocf"
)

// Step is how far a Write has come.
type Step string

// The steps of a Write, in their order.
const (
	Writing  Step = "writing"  // told again and again
	Written  Step = "written"  // and on the disk, under a temporary name
	Verified Step = "verified" // read back and compared
	Placed   Step = "placed"   // under its name
)

// Options are what may be said of a Write.
type Options struct {
	// Archived are files, verified by the caller, that may have some of the rows
	// already. Those rows are compared, not written again.
	Archived []File
	// Taken tells whether a name, such as "outbox-events/2026-03-01.avro", is
	// used elsewhere. Nil: only what is in the folder is.
	Taken func(name string) bool
	// Progress hears of each step, with the rows read so far.
	Progress func(Step, int64)

	wrap func(io.Writer) io.Writer // tests put a bad disk here
}

// Result is what a Write did.
type Result struct {
	File        *File // nil: no row was new
	Rows        int64 // read of the source, those in Archived included
	Fingerprint int64 // of all of them: the sum of their hashes, modulo 2^64
}

// Write copies the rows of src into a new file of the archive in dir, which it
// makes if it has to. When it returns the file is whole: it was read back and
// compared, it is on the disk, and it has its name. No file is ever
// overwritten; later rows of the same label go into a file of their own.
//
// It reads in many short transactions and takes the same memory however many
// rows there are. Nothing is left behind by an error but what [Clean] removes.
// A [DamagedError] is about a file of opts.Archived, or the new one.
func Write(ctx context.Context, db DB, src Source, dir string, opts Options) (Result, error) {
	if opts.Progress == nil {
		opts.Progress = func(Step, int64) {}
	}
	schemas, err := contracts(ctx, db)
	if err != nil {
		return Result{}, err
	}
	w := &writer{src: src, dir: filepath.Join(dir, Folder), opts: opts, schemas: schemas, used: map[int64]bool{}}
	w.archived.pending = (&Archive{Files: opts.Archived}).within(src.From, src.To)
	defer w.abandon()
	if len(opts.Archived) > 0 { // by a process that may have been killed before it did so
		if err := syncFolders(w.dir); err != nil {
			return Result{}, err
		}
	}
	if err := src.rows(ctx, db, w.row); err != nil {
		return Result{}, err
	}
	if err := w.checkSchemas(ctx, db); err != nil {
		return Result{}, err
	}
	if w.tmp != nil {
		if err := w.finish(ctx); err != nil {
			return Result{}, err
		}
	}
	return w.result, nil
}

// contracts reads every schema that programs declared. A few hundred of them
// are less than a block of events.
func contracts(ctx context.Context, db DB) (map[int64]Schema, error) {
	out := map[int64]Schema{}
	err := pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT fingerprint, subject, schema_text FROM waybill.outbox_contracts`)
		if err != nil {
			return err
		}
		var print int64
		var s Schema
		_, err = pgx.ForEachRow(rows, []any{&print, &s.Subject, &s.Text}, func() error {
			out[print] = s
			return nil
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the outbox's contracts: %w", err)
	}
	return out, nil
}

// writer writes one file, which it begins at the first row that is new.
type writer struct {
	src      Source
	dir      string
	opts     Options
	schemas  map[int64]Schema
	used     map[int64]bool
	archived merge
	behind   *Event // the next of archived

	tmp    *os.File
	ocf    *ocf.Writer
	codec  *digesting
	file   File
	buf    []byte
	header header
	result Result
}

// progressEvery is how many rows lie between two words of progress.
const progressEvery = 10_000

func (w *writer) row(id uuid.UUID, r *record, hash int64) error {
	w.result.Rows++
	w.result.Fingerprint += hash
	if w.result.Rows%progressEvery == 0 {
		w.opts.Progress(Writing, w.result.Rows)
	}
	if known, err := w.isArchived(id, r); known || err != nil {
		return err
	}
	return w.add(id, r)
}

// isArchived tells whether a file has the row, exactly so, moving along the
// files as the rows go by.
func (w *writer) isArchived(id uuid.UUID, r *record) (bool, error) {
	for w.behind == nil || before(w.behind.ID, id) {
		e, ok, err := w.archived.next()
		if err != nil || !ok {
			return false, err
		}
		w.behind = &e
	}
	if w.behind.ID != id {
		return false, nil
	}
	if e := r.event(id); !Same(&e, w.behind) {
		return false, fmt.Errorf("event %s is in the archive, and somebody changed its row since: put the row right, or move the files of %s away", id, w.src.Label)
	}
	return true, nil
}

func (w *writer) add(id uuid.UUID, r *record) (err error) {
	if w.tmp == nil {
		if err := w.begin(); err != nil {
			return err
		}
		w.file.First = id
	}
	if w.buf, err = schema.AppendEncode(w.buf[:0], r); err != nil {
		return fmt.Errorf("encode event %s: %w", id, err)
	}
	if len(w.buf) > maxBlock-blockBytes { // it may share its block with others before it
		return fmt.Errorf("event %s has %d bytes; the archive takes up to %d", id, len(w.buf), maxBlock-blockBytes)
	}
	if _, err := w.ocf.Write(w.buf); err != nil {
		return fmt.Errorf("write archive: %w", err)
	}
	w.used[r.Fingerprint] = true
	w.file.Events++
	w.file.Last = id
	return nil
}

// begin makes the file under a temporary name.
func (w *writer) begin() (err error) {
	if err := os.MkdirAll(w.dir, 0o700); err != nil {
		return fmt.Errorf("make archive: %w", err)
	}
	if w.tmp, err = os.CreateTemp(w.dir, tempName); err != nil { // 0600
		return fmt.Errorf("begin archive file: %w", err)
	}
	if w.codec, err = newCodec(); err != nil {
		return fmt.Errorf("begin archive file: %w", err)
	}
	w.header = header{blank: []byte(blank())}
	w.ocf, err = ocf.NewWriter(io.MultiWriter(&w.header, w.out()), schema, ocf.WithCodec(w.codec), ocf.WithBlockBytes(blockBytes),
		ocf.WithMetadata(metadata(w.src.Label, string(w.header.blank), w.schemas)))
	if err != nil {
		return fmt.Errorf("begin archive file: %w", err)
	}
	w.codec.begin(w.header.read)
	return nil
}

func (w *writer) out() io.Writer {
	if w.opts.wrap != nil {
		return w.opts.wrap(w.tmp)
	}
	return w.tmp
}

// header finds where in the file the blank stands that the summary goes to, and
// what else was written around it. A container file's header is its first write.
type header struct {
	blank []byte
	at    int64
	read  map[string][]byte // nil until it is written
}

func (h *header) Write(p []byte) (int, error) {
	if h.read != nil {
		return len(p), nil
	}
	back, err := ocf.NewReader(bytes.NewReader(p))
	if err != nil {
		return 0, fmt.Errorf("the header was not written at once: %w", err)
	}
	h.read, h.at = back.Metadata(), int64(bytes.Index(p, h.blank))
	return len(p), back.Close()
}

// checkSchemas refuses a file whose header lacks a schema that was declared
// only while it was being written.
func (w *writer) checkSchemas(ctx context.Context, db DB) error {
	var lacking bool
	for print := range w.used {
		_, ok := w.schemas[print]
		lacking = lacking || !ok
	}
	if !lacking {
		return nil
	}
	now, err := contracts(ctx, db)
	if err != nil {
		return err
	}
	for print := range w.used {
		_, then := w.schemas[print]
		if s, ok := now[print]; ok && !then {
			return fmt.Errorf("schema %s was declared while the file was being written: try again", s.Subject)
		}
	}
	return nil // nobody ever declared it; such an event was never published, but given up
}

// finish brings the file to the disk, reads it back and gives it its name.
func (w *writer) finish(ctx context.Context) error {
	if err := w.seal(); err != nil {
		return err
	}
	w.opts.Progress(Written, w.result.Rows)
	if err := w.readBack(ctx); err != nil {
		return err
	}
	w.opts.Progress(Verified, w.result.Rows)
	path, err := place(w.tmp.Name(), w.dir, w.src.Label, w.opts.Taken)
	if err != nil {
		return err
	}
	w.tmp = nil
	w.file.Path = path
	w.result.File = &w.file
	w.opts.Progress(Placed, w.result.Rows)
	return nil
}

// readBack compares the file with what went into it.
func (w *writer) readBack(ctx context.Context) error {
	back, err := Verify(ctx, w.file.Path)
	var damaged *DamagedError
	if errors.As(err, &damaged) {
		damaged.New = true
		return damaged
	}
	if err != nil {
		return fmt.Errorf("read the new file back: %w", err)
	}
	if back.Label != w.src.Label || back.summary() != w.file.summary() {
		return &DamagedError{Path: w.file.Path, New: true, Err: errors.New("it is not what was written")}
	}
	w.file = back
	return nil
}

func (w *writer) seal() error {
	w.file.Path = w.tmp.Name()
	if err := w.ocf.Close(); err != nil {
		return fmt.Errorf("write archive: %w", err)
	}
	w.file.Digest = w.codec.digest()
	if _, err := w.tmp.WriteAt([]byte(w.file.summary()), w.header.at); err != nil {
		return fmt.Errorf("write archive: %w", err)
	}
	if err := w.tmp.Sync(); err != nil {
		return fmt.Errorf("write archive: %w", err)
	}
	if err := w.tmp.Close(); err != nil {
		return fmt.Errorf("write archive: %w", err)
	}
	return nil
}

// abandon removes what did not become a file.
func (w *writer) abandon() {
	w.archived.close()
	if w.ocf != nil {
		_ = w.ocf.Close() // frees the encoder; the file goes
	}
	if w.tmp != nil {
		_ = w.tmp.Close()
		_ = os.Remove(w.tmp.Name())
	}
}
