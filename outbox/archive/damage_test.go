package archive_test

import (
	"bytes"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/outbox/archive"
)

// written is the bytes of a file of n events, and the events.
func written(t testing.TB, n int) (file []byte, events []archive.Event) {
	t.Helper()
	w := newWorld(t)
	w.fill(0, n, 200)
	res := w.write(archive.Options{})
	file, err := os.ReadFile(res.File.Path)
	must(t, err)
	return file, w.events()
}

// read reads what bytes give as a file: the events up to an error.
func read(t testing.TB, file []byte) ([]archive.Event, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "2026-03-01.avro")
	must(t, os.WriteFile(path, file, 0o600))
	a, err := archive.OpenFiles(path)
	if err != nil {
		return nil, err
	}
	var out []archive.Event
	for e, err := range a.Events(uuid.Nil, uuid.Nil) {
		if err != nil {
			return out, err
		}
		out = append(out, e)
	}
	return out, nil
}

func equal(a, b []archive.Event) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !archive.Same(&a[i], &b[i]) || a[i].Published != b[i].Published {
			return false
		}
	}
	return true
}

// Whatever byte goes wrong: either it is told, or it was none of the events'.
func TestAWrongByteIsTold(t *testing.T) {
	file, events := written(t, 8)
	silent := 0
	for i := 0; i < len(file); i += 1 + rand.IntN(5) {
		damaged := bytes.Clone(file)
		damaged[i] ^= 0x01
		got, err := read(t, damaged)
		if err == nil {
			silent++
			if !equal(got, events) {
				t.Fatalf("byte %d of %d: %d wrong events without an error", i, len(file), len(got))
			}
		}
	}
	if silent > 1 { // a bit that zstandard itself does not use
		t.Errorf("%d of %d bytes can be wrong unnoticed", silent, len(file))
	}
}

func TestAFileCutShortIsTold(t *testing.T) {
	file, _ := written(t, 1500) // of several blocks
	for _, cut := range []int{0, 1, 3, 100, len(file) / 2, len(file) - 17, len(file) - 1} {
		if got, err := read(t, file[:cut]); err == nil {
			t.Errorf("%d of %d bytes: %d events and no error", cut, len(file), len(got))
		}
	}
	// At the end of a block the container file as such is whole.
	sync := file[len(file)-16:]
	last := bytes.LastIndex(file[:len(file)-16], sync)
	if last < 0 || last+16 >= len(file) {
		t.Fatal("the file has one block")
	}
	_, err := read(t, file[:last+16])
	var damaged *archive.DamagedError
	if !errors.As(err, &damaged) || !strings.Contains(err.Error(), "ends after") {
		t.Errorf("cut at the end of a block: %v", err)
	}
	if _, err := read(t, append(bytes.Clone(file), file[last+16:]...)); !errors.As(err, &damaged) {
		t.Errorf("with its last block twice: %v", err)
	}
}

func TestAnUnfinishedFileIsTold(t *testing.T) {
	file, _ := written(t, 3)
	at := bytes.Index(file, []byte("00000000000000000003 "))
	if at < 0 {
		t.Fatal("no summary")
	}
	copy(file[at:], "unfinished")
	if _, err := read(t, file); err == nil || !strings.Contains(err.Error(), "never finished") {
		t.Error(err)
	}
}

func TestWhatIsNoArchiveIsTold(t *testing.T) {
	var foreign bytes.Buffer
	out, err := ocf.NewWriter(&foreign, avro.MustParse(`"string"`))
	must(t, err)
	must(t, out.Encode("x"))
	must(t, out.Close())
	if _, err := read(t, foreign.Bytes()); err == nil || !strings.Contains(err.Error(), "no archive of an outbox") {
		t.Error(err)
	}
	if _, err := read(t, []byte("not Avro at all")); err == nil {
		t.Error("took text for a file")
	}
	if _, err := archive.Open(t.TempDir()); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), archive.Folder) {
		t.Errorf("a folder without an archive: %v", err)
	}
}

func TestWhatAKillLeftIsPassedOverAndCleaned(t *testing.T) {
	w := newWorld(t)
	w.fill(0, 10, 100)
	res := w.write(archive.Options{})
	file, err := os.ReadFile(res.File.Path)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(filepath.Dir(res.File.Path), ".writing-1.tmp"), file[:len(file)/2], 0o600))
	w.hasAll()
	must(t, archive.Clean(w.dir))
	if names := w.names(); len(names) != 1 {
		t.Errorf("%v", names)
	}
	must(t, archive.Clean(t.TempDir())) // nothing to clean is no mistake
}

// Any Avro tool reads a file, and the bodies in it, with what is in the file.
func TestAStrangersReaderUnderstandsAFile(t *testing.T) {
	file, events := written(t, 20)
	in, err := ocf.NewReader(bytes.NewReader(file))
	must(t, err)
	defer func() { must(t, in.Close()) }()
	for i := range events {
		var rec map[string]any
		must(t, in.Decode(&rec))
		if rec["subject"] != events[i].Subject || !bytes.Equal(rec["body"].([]byte), events[i].Body) {
			t.Errorf("%v", rec)
		}
	}
}

// golden is a file of 30 events, as format 1 has been since its first day.
const golden = "testdata/format-1.avro"

// Files are kept for years: one that was ever written can be read for ever.
func TestFilesOfOldStayReadable(t *testing.T) {
	info, err := archive.Verify(t.Context(), golden)
	must(t, err)
	if info.Events != 30 || info.Label != label || len(info.Schemas) != 1 {
		t.Errorf("%+v", info)
	}
	a, err := archive.OpenFiles(golden)
	must(t, err)
	e := all(t, a)[7]
	if e.Subject != "a7" || e.Sequence != 7 || e.Published.Offset != 107 || len(e.Body) != 200 || e.Fingerprint != event.Fingerprint(schemaText) {
		t.Errorf("%+v", e)
	}
}

func FuzzAFileGivesItsEventsOrAnError(f *testing.F) {
	file, err := os.ReadFile(golden)
	must(f, err)
	f.Add(file)
	f.Add(file[:len(file)/2])
	f.Add([]byte("Obj\x01"))
	a, err := archive.OpenFiles(golden)
	must(f, err)
	events := all(f, a)
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "fuzz.avro")
		must(t, os.WriteFile(path, data, 0o600))
		info, err := archive.Verify(t.Context(), path)
		if err != nil {
			return
		}
		got, err := archive.OpenFiles(path)
		must(t, err)
		read := all(t, got)
		if int64(len(read)) != info.Events || read[0].ID != info.First || read[len(read)-1].ID != info.Last {
			t.Errorf("%d events, the header tells of %+v", len(read), info)
		}
		if info.Digest == a.Files[0].Digest && !equal(read, events) {
			t.Error("other events under the same digest")
		}
	})
}
