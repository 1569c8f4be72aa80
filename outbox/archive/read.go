package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/uuid"
	"github.com/twmb/avro/ocf"
)

// DamagedError tells that a file is not what was written.
type DamagedError struct {
	Path string
	New  bool // it was just written, and is removed again
	Err  error
}

func (e *DamagedError) Error() string {
	if e.New {
		return fmt.Sprintf("the archive file just written reads back wrong: %v; look after the disk of %s", e.Err, filepath.Dir(e.Path))
	}
	return fmt.Sprintf("archive file %s is damaged: %v; put a copy in its place, or move it away to go on without its events", e.Path, e.Err)
}

func (e *DamagedError) Unwrap() error { return e.Err }

// reader reads one file from its beginning to its end.
type reader struct {
	file  File
	in    *os.File
	ocf   *ocf.Reader
	codec *digesting
	read  int64
	last  uuid.UUID
}

func open(path string) (_ *reader, err error) {
	in, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open archive: %w", err)
	}
	r := &reader{file: File{Path: path}, in: in}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.close())
		}
	}()
	info, err := in.Stat()
	if err != nil {
		return nil, fmt.Errorf("open archive: %w", err)
	}
	r.file.Bytes = info.Size()
	if r.codec, err = newCodec(); err != nil {
		return nil, fmt.Errorf("open archive: %w", err)
	}
	r.ocf, err = ocf.NewReader(in, ocf.WithCodec(r.codec),
		ocf.WithMaxBlockBytes(maxBlock), ocf.WithMaxDecompressedBlockBytes(maxBlock))
	if err != nil {
		return nil, &DamagedError{Path: path, Err: err}
	}
	if err := r.file.setMetadata(r.ocf.Metadata()); err != nil {
		return nil, &DamagedError{Path: path, Err: err}
	}
	if r.ocf.Schema().String() != schema.String() || string(r.ocf.Metadata()["avro.codec"]) != r.codec.Name() {
		return nil, &DamagedError{Path: path, Err: errors.New("its header's Avro schema or codec is not the one of its format")}
	}
	r.codec.begin(r.ocf.Metadata())
	return r, nil
}

// next is the next event, or io.EOF at the end of a file that proved whole.
func (r *reader) next() (Event, error) {
	var rec record
	if err := r.ocf.Decode(&rec); errors.Is(err, io.EOF) {
		return Event{}, r.end()
	} else if err != nil {
		return Event{}, &DamagedError{Path: r.file.Path, Err: err}
	}
	id, err := uuid.Parse(rec.ID)
	if err != nil {
		return Event{}, &DamagedError{Path: r.file.Path, Err: fmt.Errorf("event %d has no id", r.read+1)}
	}
	if r.read > 0 && slices.Compare(id[:], r.last[:]) <= 0 {
		return Event{}, &DamagedError{Path: r.file.Path, Err: fmt.Errorf("event %d is out of order", r.read+1)}
	}
	r.read++
	r.last = id
	if r.read == 1 && id != r.file.First || r.read > r.file.Events {
		return Event{}, &DamagedError{Path: r.file.Path, Err: errors.New("its events are not those its header tells of")}
	}
	return rec.event(id), nil
}

func (r *reader) end() error {
	switch {
	case r.read != r.file.Events:
		return &DamagedError{Path: r.file.Path, Err: fmt.Errorf("it ends after %d of %d events", r.read, r.file.Events)}
	case r.last != r.file.Last || r.codec.digest() != r.file.Digest:
		return &DamagedError{Path: r.file.Path, Err: errors.New("its events do not give the digest in its header")}
	}
	return io.EOF
}

func (r *reader) close() error {
	if r == nil {
		return nil
	}
	var err error
	if r.ocf != nil {
		err = r.ocf.Close() // with the codec
	}
	if e := r.in.Close(); e != nil {
		err = errors.Join(err, fmt.Errorf("close archive: %w", e))
	}
	return err
}

// Verify reads a file from beginning to end and compares it with its own count
// and digest.
func Verify(ctx context.Context, path string) (File, error) {
	r, err := open(path)
	if err != nil {
		return File{}, err
	}
	for ctx.Err() == nil {
		if _, err = r.next(); err != nil {
			break
		}
	}
	if errors.Is(err, io.EOF) {
		return r.file, r.close()
	}
	return File{}, errors.Join(ctx.Err(), err, r.close())
}
