// Package archive keeps events that leave the outbox: Avro object container
// files, compressed with zstandard, that any Avro tool reads and that package
// replay will read.
//
// A file holds every column of its events, where in the log they were
// published, and the schemas their bodies were written with: who has the files
// needs no database and no registry. It carries its own count and digest, so
// that a file which is damaged or cut short is told from a whole one. A file
// under its final name was read back and compared before it got that name, and
// is never written to again.
//
// Limits: an event with its envelope may have almost 64 MiB. Reading back proves what
// the kernel holds, not the medium below it: keep a copy elsewhere if the
// events matter.
package archive

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/waybillhq/waybill/event"
)

// Folder is where the files are, below the folder an archive is named by.
const Folder = "outbox-events"

// Event is an event as the outbox had it.
type Event struct {
	event.Envelope
	Topic       string
	Fingerprint int64  // names the schema of Body; see [Archive.Schema]
	Body        []byte // Avro, without a registry's id before it
	XID         int64  // the writing transaction, 0 if the outbox did not note it
	Published   Published
}

// Published is where and when the broker took an event, the first time if it
// did so twice. Partition and Offset are -1 for one that an operator gave up:
// it is in no log.
type Published struct {
	Partition int32
	Offset    int64
	At        time.Time
}

// File is what a file says of itself.
type File struct {
	Path    string           `json:"path"`
	Label   string           `json:"label"`  // the events' day, or "default-" and the day it was written on
	Events  int64            `json:"events"` // never 0
	Bytes   int64            `json:"bytes"`  // of the file
	Digest  Digest           `json:"digest"`
	First   uuid.UUID        `json:"first_id"` // lowest id
	Last    uuid.UUID        `json:"last_id"`  // highest
	Schemas map[int64]Schema `json:"-"`        // by fingerprint; at least those of its events
}

// Schema is what bodies were written with.
type Schema struct {
	Subject string // in the registry
	Text    string
}

// Name of the file below the archive's folder.
func (f File) Name() string { return Folder + "/" + filepath.Base(f.Path) }

// Archive is files of events.
type Archive struct {
	Files []File // by their first event
}

// Open looks at every file of the archive in dir. It reads their headers, not
// their events. What a killed process left unfinished, named *.tmp, is passed
// over; a file that is damaged is an error.
func Open(dir string) (*Archive, error) {
	paths, err := List(dir)
	if err != nil {
		return nil, err
	}
	return OpenFiles(paths...)
}

// OpenFiles makes an archive of the files named.
func OpenFiles(paths ...string) (*Archive, error) {
	a := &Archive{}
	for _, path := range paths {
		f, err := Stat(path)
		if err != nil {
			return nil, err
		}
		a.Files = append(a.Files, f)
	}
	slices.SortFunc(a.Files, func(x, y File) int {
		return slices.Compare(x.First[:], y.First[:])
	})
	return a, nil
}

// List gives the paths of the files of the archive in dir, by name. The error
// wraps fs.ErrNotExist where there is no archive.
func List(dir string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(dir, Folder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s holds no archive of an outbox: its files would be in the folder %s there: %w", dir, Folder, fs.ErrNotExist)
	}
	if err != nil {
		return nil, fmt.Errorf("list archive: %w", err)
	}
	var paths []string
	for _, e := range entries {
		if e.Type().IsRegular() && strings.HasSuffix(e.Name(), extension) && !strings.HasPrefix(e.Name(), ".") {
			paths = append(paths, filepath.Join(dir, Folder, e.Name()))
		}
	}
	return paths, nil
}

// Stat reads the header of a file.
func Stat(path string) (File, error) {
	r, err := open(path)
	if err != nil {
		return File{}, err
	}
	return r.file, r.close()
}

// Schema is the one bodies of that fingerprint were written with, false if no
// file has it.
func (a *Archive) Schema(fingerprint int64) (Schema, bool) {
	for _, f := range a.Files {
		if s, ok := f.Schemas[fingerprint]; ok {
			return s, true
		}
	}
	return Schema{}, false
}

// Events yields the events whose ids lie from the id from, included, to the id
// to, excluded; the zero id is no bound. They come by ascending id, which is
// the order of their writers' clocks, and each id once, in whatever files it
// is. The memory it takes follows the number of files that overlap, not their
// size.
//
// The first error ends it, and comes with a zero Event. Damage is found at the
// latest at the end of its file: who must not act upon part of a file verifies
// it first.
func (a *Archive) Events(from, to uuid.UUID) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		m := &merge{pending: a.within(from, to)}
		defer m.close()
		for {
			e, ok, err := m.next()
			switch {
			case err != nil:
				yield(Event{}, err)
				return
			case !ok || to != uuid.Nil && slices.Compare(e.ID[:], to[:]) >= 0:
				return
			case slices.Compare(e.ID[:], from[:]) < 0:
			case !yield(e, nil):
				return
			}
		}
	}
}

// within are the files that may hold events from..to, by their first event.
func (a *Archive) within(from, to uuid.UUID) []File {
	var out []File
	for _, f := range a.Files {
		if slices.Compare(f.Last[:], from[:]) >= 0 && (to == uuid.Nil || slices.Compare(f.First[:], to[:]) < 0) {
			out = append(out, f)
		}
	}
	return out
}
