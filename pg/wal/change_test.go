package wal_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/waybillhq/waybill/pg/wal"
)

var capture = flag.Bool("capture", false, "write testdata/pgoutput.txt anew from a real server")

const captured = "testdata/pgoutput.txt"

// changes hears everything and writes it down as lines.
type changes struct {
	lines []string
	ends  int
}

func (c *changes) say(format string, args ...any) error {
	c.lines = append(c.lines, fmt.Sprintf(format, args...))
	return nil
}

func (c *changes) Begin(wal.Begin) error { return c.say("begin") }

func (c *changes) Commit(wal.LSN) error {
	c.ends++
	return c.say("commit")
}

func (c *changes) Insert(rel *wal.Relation, row []wal.Value) error {
	return c.say("insert %s/%c %s", rel.Name, rel.Identity, text(row))
}

func (c *changes) Update(rel *wal.Relation, old wal.Old, row []wal.Value) error {
	return c.say("update %s %s -> %s", rel.Name, oldText(old), text(row))
}

func (c *changes) Delete(rel *wal.Relation, old wal.Old) error {
	return c.say("delete %s %s", rel.Name, oldText(old))
}

func (c *changes) Truncate(rels []*wal.Relation) error {
	var names []string
	for _, rel := range rels {
		names = append(names, rel.Name)
	}
	slices.Sort(names)
	return c.say("truncate %v", names)
}

func (c *changes) Message(m wal.Message) error {
	return c.say("message transactional=%t %s %s", m.Transactional, m.Prefix, m.Content)
}

func text(row []wal.Value) string {
	var out []string
	for _, v := range row {
		switch v.Kind {
		case wal.Text:
			out = append(out, fmt.Sprintf("%.10s", v.Data))
		case wal.Binary:
			out = append(out, fmt.Sprintf("%.8x", v.Data))
		default:
			out = append(out, string(v.Kind))
		}
	}
	return "(" + strings.Join(out, " ") + ")"
}

func oldText(old wal.Old) string {
	if old.Kind == wal.OldNone {
		return "-"
	}
	return string(old.Kind) + text(old.Row)
}

var storyOfChanges = []struct{ sql, heard string }{
	{"INSERT INTO thing VALUES (1, 'a')", "insert thing/d (1 a)"},
	{"UPDATE thing SET v = 'b'", "update thing - -> (1 b)"},
	{"UPDATE thing SET n = 2", "update thing K(1 n) -> (2 b)"},
	{"DELETE FROM thing", "delete thing K(2 n)"},
	{"INSERT INTO big VALUES (1, repeat(md5('x'), 80), 'a')", "insert big/f (1 9dd4e46126 a)"},
	{"UPDATE big SET w = 'b'", "update big O(1 9dd4e46126 a) -> (1 u b)"},
	{"DELETE FROM big", "delete big O(1 9dd4e46126 b)"},
	{"TRUNCATE thing, big", "truncate [big thing]"},
	{"SELECT pg_logical_emit_message(true, 'mine', 'within')", "message transactional=true mine within"},
}

// hear runs the story and returns what the slot says of it, message by message.
func hear(t *testing.T, cfg wal.Config, h interface {
	wal.Handler
	done() bool
},
) (raw [][]byte) {
	t.Helper()
	s := open(t, cfg)
	defer s.Close(context.Background())
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	d := wal.NewDecoder(h)
	for !h.done() {
		f, err := s.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if f.Data == nil {
			continue
		}
		raw = append(raw, bytes.Clone(f.Data))
		if err := d.Decode(f.Data); err != nil {
			t.Fatal(err)
		}
	}
	return raw
}

// untilCommits is done after so many commits.
type untilCommits struct {
	changes
	want int
}

func (u *untilCommits) done() bool { return u.ends >= u.want }

func TestEveryKindOfChangeIsHeard(t *testing.T) {
	db, cfg := slotted(t)
	cfg.Text, cfg.Messages = true, true
	for _, sql := range []string{
		"CREATE TABLE big (n int PRIMARY KEY, v text, w text)",
		"ALTER TABLE big REPLICA IDENTITY FULL",
		"ALTER TABLE big ALTER v SET STORAGE EXTERNAL",
		"ALTER PUBLICATION things ADD TABLE big",
	} {
		if _, err := db.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	var want []string
	for _, s := range storyOfChanges {
		if _, err := db.Exec(t.Context(), s.sql); err != nil {
			t.Fatal(err)
		}
		want = append(want, "begin", s.heard, "commit")
	}
	h := &untilCommits{want: len(storyOfChanges)}
	raw := hear(t, cfg, h)
	// Servers before 15 also send the transactions of the DDL, empty.
	got := strings.ReplaceAll(strings.Join(h.lines, "\n")+"\n", "begin\ncommit\n", "")
	if got != strings.Join(want, "\n")+"\n" {
		t.Errorf("heard\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
	if *capture {
		write(t, raw)
	}
}

func TestMessageOutsideOfATransactionComesThoughThatIsUndone(t *testing.T) {
	db, cfg := slotted(t)
	cfg.Messages = true
	for _, sql := range []string{
		"BEGIN", "SELECT pg_logical_emit_message(false, 'mine', 'at once')",
		"SELECT pg_logical_emit_message(true, 'mine', 'undone')", "ROLLBACK",
		"INSERT INTO thing VALUES (1)", // flushes the WAL
	} {
		if _, err := db.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	h := &untilCommits{want: 1}
	hear(t, cfg, h)
	want := []string{"message transactional=false mine at once", "begin", "insert thing/d (00000001 n)", "commit"}
	if !slices.Equal(h.lines, want) {
		t.Errorf("heard %q", h.lines)
	}
}

// A handler of inserts alone is told of nothing else, however odd.
func TestKindsWithoutAMethodArePassedOver(t *testing.T) {
	h := &heard{}
	d := wal.NewDecoder(h)
	for _, m := range [][]byte{begin(1, 1), {'U'}, {'D', 1}, {'T'}, {'M', 0xff}, {'Y'}, {'O'}, {'?'}, commit(2)} {
		if err := d.Decode(m); err != nil {
			t.Errorf("%q: %v", m, err)
		}
	}
	if len(h.rows) != 0 || len(h.commits) != 1 {
		t.Errorf("heard %+v", h)
	}
}

func TestQuietStreamWakesItsReader(t *testing.T) {
	_, cfg := slotted(t)
	s := open(t, cfg)
	defer s.Close(context.Background())
	if v := s.ServerVersion(); v < 10 {
		t.Errorf("server version %d", v)
	}
	// Left alone, the server would send the second one after five seconds.
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	began := time.Now()
	for range 5 {
		f, err := s.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if f.Data != nil || f.WALEnd == 0 {
			t.Errorf("frame %+v", f)
		}
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("five keepalives took %s", took)
	}
}

func TestInsertOfAKnownRelationAllocatesNothing(t *testing.T) {
	d := wal.NewDecoder(&counting{})
	for _, m := range [][]byte{relation(9, "thing", "a", "b"), begin(1, 1)} {
		if err := d.Decode(m); err != nil {
			t.Fatal(err)
		}
	}
	row := insert(9, []byte("some value"), nil)
	message := new(message).put(byte('M'), byte(1), uint64(7), "waybill", uint32(3)).Bytes()
	message = append(message, "abc"...)
	for name, m := range map[string][]byte{"insert": row, "message": message} {
		n := testing.AllocsPerRun(1000, func() {
			if err := d.Decode(m); err != nil {
				t.Fatal(err)
			}
		})
		if n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// counting keeps nothing of what it hears.
type counting struct{ n int }

func (c *counting) Begin(wal.Begin) error                   { return nil }
func (c *counting) Insert(*wal.Relation, []wal.Value) error { c.n++; return nil }
func (c *counting) Update(_ *wal.Relation, o wal.Old, r []wal.Value) error {
	c.n += len(o.Row) + len(r)
	return nil
}

func (c *counting) Delete(_ *wal.Relation, o wal.Old) error { c.n += len(o.Row); return nil }

func (c *counting) Truncate(r []*wal.Relation) error { c.n += len(r); return nil }

func (c *counting) Message(m wal.Message) error { c.n += len(m.Content); return nil }
func (c *counting) Commit(wal.LSN) error        { return nil }

// read gives the messages a real server sent, one a line in hex.
func read(t testing.TB) (raw [][]byte) {
	t.Helper()
	b, err := os.ReadFile(captured)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		m, err := hex.DecodeString(strings.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		raw = append(raw, m)
	}
	return raw
}

func write(t *testing.T, raw [][]byte) {
	t.Helper()
	var b bytes.Buffer
	for _, m := range raw {
		fmt.Fprintf(&b, "%x\n", m)
	}
	if err := os.WriteFile(captured, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// What a server once sent is understood for ever, and no part of it can be cut
// short or damaged into a panic.
func FuzzDecodeChanges(f *testing.F) {
	all := read(f)
	for _, m := range all {
		f.Add(m)
	}
	f.Fuzz(func(t *testing.T, m []byte) {
		d := wal.NewDecoder(&counting{})
		for _, known := range all {
			if known[0] == 'R' {
				if err := d.Decode(known); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = d.Decode(m)
		_ = d.Decode(begin(1, 1))
		_ = d.Decode(m)
		for _, known := range all { // and the decoder still works
			if known[0] == 'U' || known[0] == 'D' {
				_ = d.Decode(known)
			}
		}
	})
}

func TestCapturedMessagesAreUnderstood(t *testing.T) {
	h := &changes{}
	d := wal.NewDecoder(h)
	for _, m := range read(t) {
		if err := d.Decode(m); err != nil {
			t.Fatalf("%q: %v", m, err)
		}
	}
	for _, s := range storyOfChanges {
		if !slices.Contains(h.lines, s.heard) {
			t.Errorf("%q is not in what was captured", s.heard)
		}
	}
}

func TestChangesCutShortAreRefused(t *testing.T) {
	all := read(t)
	for _, m := range all {
		if !strings.ContainsRune("UDTM", rune(m[0])) {
			continue
		}
		for n := 1; n < len(m); n++ {
			d := wal.NewDecoder(&changes{})
			prepare := [][]byte{begin(1, 1)}
			for _, r := range all {
				if r[0] == 'R' {
					prepare = append(prepare, r)
				}
			}
			for _, p := range prepare {
				if err := d.Decode(p); err != nil {
					t.Fatal(err)
				}
			}
			if err := d.Decode(m[:n]); !errors.Is(err, wal.ErrMalformed) {
				t.Errorf("%q cut to %d of %d bytes: %v", m[0], n, len(m), err)
			}
		}
	}
}
