// Package incident keeps what an operator must hear of: a slot that was lost, a
// partition that stopped, an event that was given up. A line in a log is gone
// with the log; a row here is found by whoever looks the next morning.
//
// The same thing seen again within an hour is counted in its row. The table is
// bounded in age and rows, and each row in size.
package incident

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/waybillhq/waybill/pg"
)

//go:embed migrations/*.sql
var files embed.FS

// Migration is the table of this package, for pg.Migrate.
func Migration() pg.Migration {
	return pg.Migration{Package: "incident", Schema: "waybill", Files: files}
}

// Incident is what happened, for [Record].
type Incident struct {
	Part    string         `json:"part"`    // of the program: "relay", "consumer"
	Kind    string         `json:"kind"`    // what happened, one of a small set: "slot lost"
	Subject string         `json:"subject"` // what it happened to: a slot, a topic's partition, an event
	Text    string         `json:"text"`    // for people: what it means and what to do
	Detail  map[string]any `json:"detail"`  // for machines, anything that encoding/json takes
}

// Seen is an incident with its times.
type Seen struct {
	ID     int64     `json:"id"`
	At     time.Time `json:"at"`      // first seen
	LastAt time.Time `json:"last_at"` // last seen
	Count  int64     `json:"count"`   // times seen
	Incident
}

// Bounds of the table and of one row. Lengths are in bytes; what is longer is
// cut.
const (
	repeatWithin = "1 hour" // of the last time
	keepFor      = "90 days"
	keepRows     = 10_000
	maxName      = 512
	maxText      = 8 << 10
	maxDetail    = 16 << 10
)

// DB is a pool, a connection or a transaction.
type DB interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// Record notes an incident. One that was noted within the last hour under the
// same part, kind and subject is counted there, with the newer text and detail.
func Record(ctx context.Context, db DB, in Incident) error {
	in, detail := in.storable()
	again, err := db.Exec(ctx, `UPDATE waybill.incidents SET count = count + 1, last_at = now(), text = $4, detail = $5::jsonb
		WHERE part = $1 AND kind = $2 AND subject = $3 AND latest AND last_at > now() - interval '`+repeatWithin+`'`,
		in.Part, in.Kind, in.Subject, in.Text, detail)
	if err == nil && again.RowsAffected() == 0 {
		err = insert(ctx, db, in, detail)
	}
	if err != nil {
		return fmt.Errorf("record incident %s of %s: %w", in.Kind, in.Part, err)
	}
	return nil
}

// insert makes a row of its own. Another process may do the same at this
// moment: whoever comes second is counted in the row of the first.
func insert(ctx context.Context, db DB, in Incident, detail string) error {
	_, err := db.Exec(ctx, `UPDATE waybill.incidents SET latest = false
		WHERE part = $1 AND kind = $2 AND subject = $3 AND latest AND last_at <= now() - interval '`+repeatWithin+`'`,
		in.Part, in.Kind, in.Subject)
	if err != nil {
		return err
	}
	_, err = db.Exec(ctx, `INSERT INTO waybill.incidents AS i (part, kind, subject, text, detail)
		VALUES ($1, $2, $3, $4, $5::jsonb)
		ON CONFLICT (part, kind, subject) WHERE latest
		DO UPDATE SET count = i.count + 1, last_at = now(), text = excluded.text, detail = excluded.detail`,
		in.Part, in.Kind, in.Subject, in.Text, detail)
	if err != nil {
		return err
	}
	_, err = db.Exec(ctx, `DELETE FROM waybill.incidents WHERE last_at < now() - interval '`+keepFor+`'
		OR id IN (SELECT id FROM waybill.incidents ORDER BY last_at DESC, id DESC OFFSET $1)`, keepRows)
	return err
}

// Reader is a pool, a connection or a transaction.
type Reader interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// List gives incidents last seen at or after since, the latest first and at
// most limit.
func List(ctx context.Context, db Reader, since time.Time, limit int) ([]Seen, error) {
	rows, err := db.Query(ctx, `SELECT id, at, last_at, count, part, kind, subject, text, detail
		FROM waybill.incidents WHERE last_at >= $1 ORDER BY last_at DESC, id DESC LIMIT $2`, since, limit)
	if err != nil {
		return nil, fmt.Errorf("list incidents: %w", err)
	}
	seen, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s Seen, err error) {
		err = row.Scan(&s.ID, &s.At, &s.LastAt, &s.Count, &s.Part, &s.Kind, &s.Subject, &s.Text, &s.Detail)
		return s, err
	})
	if err != nil {
		return nil, fmt.Errorf("list incidents: %w", err)
	}
	return seen, nil
}

// storable cuts what is too long and replaces what a text column refuses: an
// incident must not be lost for the bytes of an error it quotes.
func (in Incident) storable() (Incident, string) {
	in.Part, in.Kind, in.Subject = text(in.Part, maxName), text(in.Kind, maxName), text(in.Subject, maxName)
	in.Text = text(in.Text, maxText)
	if in.Detail == nil {
		return in, "{}"
	}
	b, err := json.Marshal(in.Detail)
	if err == nil && len(b) > maxDetail {
		err = fmt.Errorf("%d bytes, at most %d are kept", len(b), maxDetail)
	}
	if err != nil {
		b, _ = json.Marshal(map[string]string{"detail left out": err.Error()}) // of two strings: never fails
	}
	return in, strings.ReplaceAll(string(b), `\u0000`, `\ufffd`)
}

func text(s string, limit int) string {
	s = strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", "\ufffd"), "\ufffd")
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
