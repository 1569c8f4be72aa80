package faults

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Setting is a fault and how it is set. Value is 0 where it is off; the fields
// after it then are empty.
type Setting struct {
	Fault
	Value int64      `json:"value"`
	Left  *int64     `json:"left,omitempty"`  // of a value in events: how many are still to come
	Until *time.Time `json:"until,omitempty"` // nil: until it is cleared
	SetAt *time.Time `json:"set_at,omitempty"`
	SetBy string     `json:"set_by,omitempty"`
}

// maxFor bounds how long a fault may be set for.
const maxFor = 30 * 24 * time.Hour

// Set sets a fault, for a time or, if that is 0, until it is cleared. It strikes
// others than it did before. A value of 0 clears it. by is who asks; it is kept.
//
// An [*UnknownError] is a name that no fault has, an [*InvalidError] a value or a
// time out of bounds.
func (f *Flags) Set(ctx context.Context, name string, value int64, last time.Duration, by string) (Setting, error) {
	fault, err := find(name)
	if err != nil {
		return Setting{}, err
	}
	if value < 0 || value > fault.Max {
		return Setting{}, &InvalidError{"value", fmt.Sprintf("%s takes %s", name, fault.takes())}
	}
	if last < 0 || last > maxFor {
		return Setting{}, &InvalidError{"for", fmt.Sprintf("a fault is set for more than 0s and at most %dh, or without an end", int(maxFor.Hours()))}
	}
	if value == 0 {
		_, err := f.Clear(ctx, name)
		return Setting{Fault: fault}, err
	}
	return f.put(ctx, fault, value, last, by)
}

// takes is the values of a fault, in words.
func (f Fault) takes() string {
	switch f.Unit {
	case Switch:
		return "1 for on and 0 for off"
	case Percent:
		return fmt.Sprintf("0 to %d, in percent", f.Max)
	case Millis:
		return fmt.Sprintf("0 to %d, in milliseconds", f.Max)
	case Events:
		return fmt.Sprintf("0 to %d events", f.Max)
	}
	return fmt.Sprintf("0 to %d", f.Max)
}

func (f *Flags) put(ctx context.Context, fault Fault, value int64, last time.Duration, by string) (Setting, error) {
	var lasts *time.Duration
	if last > 0 {
		lasts = &last
	}
	s := Setting{Fault: fault, Value: value}
	err := pgx.BeginFunc(ctx, f.pool, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `INSERT INTO faults.flags AS f (name, value, seed, ends_at, set_by)
			VALUES ($1, $2, $3, now() + $4::interval, $5)
			ON CONFLICT (name) DO UPDATE SET value = excluded.value, seed = excluded.seed, taken = 0,
				ends_at = excluded.ends_at, set_at = excluded.set_at, set_by = excluded.set_by
			RETURNING ends_at, set_at, set_by`, fault.Name, value, newSeed(), lasts, named(by)).Scan(&s.Until, &s.SetAt, &s.SetBy)
		if err == nil && fault.Unit == Events {
			s.Left = &value
			_, err = tx.Exec(ctx, `DELETE FROM faults.poisoned`)
		}
		return err
	})
	if err != nil {
		return Setting{}, fmt.Errorf("set fault %s: %w", fault.Name, err)
	}
	s.utc()
	return s, f.Refresh(ctx)
}

func newSeed() int64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails: the program ends when there is no randomness
	return int64(binary.BigEndian.Uint64(b[:]))
}

const maxBy = 200 // letters

// named is who asked, as the table takes it.
func named(by string) string {
	letters := []rune(strings.ReplaceAll(strings.ToValidUTF8(by, "�"), "\x00", ""))
	return string(letters[:min(len(letters), maxBy)])
}

func (s *Setting) utc() {
	for _, t := range []*time.Time{s.Until, s.SetAt} {
		if t != nil {
			*t = t.UTC()
		}
	}
}

// Clear ends faults, all of them if none is named, and tells how many were set.
// One that was not is no error, one that there is not an [*UnknownError].
func (f *Flags) Clear(ctx context.Context, names ...string) (cleared int64, err error) {
	for _, name := range names {
		if _, err := find(name); err != nil {
			return 0, err
		}
	}
	err = pgx.BeginFunc(ctx, f.pool, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `WITH gone AS (
				DELETE FROM faults.flags WHERE cardinality($1::text[]) = 0 OR name = ANY ($1) RETURNING `+standing+` AS stood)
			SELECT count(*) FILTER (WHERE stood) FROM gone`, append([]string{}, names...)).Scan(&cleared)
		if err == nil {
			_, err = tx.Exec(ctx, `DELETE FROM faults.poisoned WHERE NOT EXISTS (SELECT FROM faults.flags WHERE name = $1)`, PoisonEvent)
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("clear faults: %w", err)
	}
	return cleared, f.Refresh(ctx)
}

// List tells how each fault is set, also those that are off, sorted by name.
func (f *Flags) List(ctx context.Context) ([]Setting, error) {
	rows, err := f.pool.Query(ctx, `SELECT name, value, value - taken, ends_at, set_at, set_by FROM faults.flags WHERE `+standing)
	if err != nil {
		return nil, fmt.Errorf("list faults: %w", err)
	}
	set := map[string]Setting{}
	for rows.Next() {
		var name string
		var s Setting
		if err := rows.Scan(&name, &s.Value, &s.Left, &s.Until, &s.SetAt, &s.SetBy); err != nil {
			rows.Close()
			return nil, fmt.Errorf("list faults: %w", err)
		}
		set[name] = s
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("list faults: %w", err)
	}
	all := make([]Setting, 0, len(Known()))
	for _, fault := range Known() {
		s := set[fault.Name]
		if s.Fault = fault; fault.Unit != Events {
			s.Left = nil
		}
		s.utc()
		all = append(all, s)
	}
	return all, nil
}
