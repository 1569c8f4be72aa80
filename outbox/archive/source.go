package archive

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/pg/daypart"
)

// Source is rows of one partition of the outbox.
type Source struct {
	Table daypart.Table
	Label string    // names the file: the day, such as "2026-03-01"
	From  uuid.UUID // lowest id
	To    uuid.UUID // first id that is too high; zero for no bound

	// SkipUnmarked passes over rows that are not marked as published, or were
	// marked at or after PublishedBefore. Without it such a row is
	// ErrUnmarked.
	SkipUnmarked    bool
	PublishedBefore time.Time // zero: whenever
}

// ErrUnmarked is a row that the relay has not published yet.
var ErrUnmarked = errors.New("is not marked as published")

// DB begins transactions: a pool or a connection.
type DB interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}

// chunk is how many rows one statement reads. Each has a snapshot of its own:
// one for the whole of a large day would hold back vacuum everywhere for
// minutes. Nothing of a day ever changes; what is added while it is read is
// found by whoever compares Fingerprint before the day is dropped.
const chunk = 20_000

// The columns of a row as it is read, in their order.
const (
	colID = iota
	colTopic
	colSubject
	colSource
	colType
	colTime
	colTenant
	colSequence
	colCorrelationID
	colCausationID
	colTraceParent
	colFingerprint
	colBody
	colXID
	colHash
	colPublishedAt
	colPartition
	colOffset
	columnCount
)

// RowHash is a row's part of a fingerprint, in SQL, for a table named e: the
// server's own hash of all its columns.
const RowHash = `hash_record_extended(e.*, 0)`

const columns = `e.id, e.topic, e.subject, e.source, e.type, e.time, e.tenant, e.sequence, e.correlation_id,
	e.causation_id, e.trace_parent, e.schema_fingerprint, e.body, e.xid, ` + RowHash + `,
	p.published_at, p.log_partition, p.log_offset`

// selectFrom looks up each row's mark by the index: the day's marks may be as
// many as its events, and a join that sorts or hashes them would do so once a
// chunk.
func selectFrom(t daypart.Table) string {
	return `SELECT ` + columns + ` FROM ` + pgx.Identifier{t.Schema, t.Name}.Sanitize() + ` e
		LEFT JOIN LATERAL (SELECT published_at, log_partition, log_offset FROM waybill.outbox_published p
			WHERE p.id = e.id ORDER BY published_at, log_offset LIMIT 1) p ON true`
}

func (s *Source) chunkSQL() string {
	var b strings.Builder
	b.WriteString(selectFrom(s.Table) + ` WHERE e.id >= $1`)
	if s.To != uuid.Nil {
		b.WriteString(` AND e.id < $3`)
	} else {
		b.WriteString(` AND $3::uuid IS NOT NULL`) // keeps the number of parameters
	}
	b.WriteString(` ORDER BY e.id LIMIT $2`)
	return b.String()
}

// rows calls each with every row of s, by ascending id. The record and what it
// points to are each's to keep.
func (s *Source) rows(ctx context.Context, db DB, each func(id uuid.UUID, r *record, hash int64) error) error {
	sql := s.chunkSQL()
	for from := s.From; ; {
		n, last, err := s.chunk(ctx, db, sql, from, each)
		if err != nil {
			return fmt.Errorf("read %s: %w", s.Table.Name, err)
		}
		if from = successor(last); n < chunk || from == uuid.Nil {
			return nil
		}
	}
}

func (s *Source) chunk(ctx context.Context, db DB, sql string, from uuid.UUID,
	each func(uuid.UUID, *record, int64) error,
) (n int, last uuid.UUID, err error) {
	err = pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		// The index gives the rows in order whatever the statistics say, or do
		// not say yet; and many small lookups are nothing to compile for.
		_, err := tx.Exec(ctx, `SET LOCAL enable_seqscan = off; SET LOCAL jit = off; SET LOCAL statement_timeout = 0`)
		if err != nil {
			return err
		}
		rows, err := tx.Query(ctx, sql, pgx.QueryResultFormats{pgx.BinaryFormatCode}, from, chunk, s.To)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			n++
			raw := rows.RawValues()
			r, hash, marked, err := decode(raw)
			if err != nil {
				return err
			}
			copy(last[:], raw[colID])
			if !marked || !s.PublishedBefore.IsZero() && r.PublishedAt >= s.PublishedBefore.UnixMicro() {
				if s.SkipUnmarked {
					continue
				}
				return fmt.Errorf("event %s %w", last, ErrUnmarked)
			}
			if err := each(last, r, hash); err != nil {
				return err
			}
		}
		return rows.Err()
	})
	return n, last, err
}

// Lock reads the rows of t with those ids, as far as they are there, and keeps
// others from changing them until tx ends.
func Lock(ctx context.Context, tx pgx.Tx, t daypart.Table, ids []uuid.UUID) ([]Event, error) {
	rows, err := tx.Query(ctx, selectFrom(t)+` WHERE e.id = ANY($1) FOR UPDATE OF e`,
		pgx.QueryResultFormats{pgx.BinaryFormatCode}, ids)
	if err != nil {
		return nil, fmt.Errorf("lock rows of %s: %w", t.Name, err)
	}
	defer rows.Close()
	var out []Event
	for rows.Next() {
		r, _, _, err := decode(rows.RawValues())
		if err != nil {
			return nil, fmt.Errorf("lock rows of %s: %w", t.Name, err)
		}
		out = append(out, r.event(uuid.UUID(rows.RawValues()[colID])))
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("lock rows of %s: %w", t.Name, err)
	}
	return out, nil
}

// decode copies a row out of the connection's buffer.
func decode(raw [][]byte) (r *record, hash int64, marked bool, err error) {
	if len(raw) != columnCount {
		return nil, 0, false, fmt.Errorf("row has %d columns, want %d", len(raw), columnCount)
	}
	for i, size := range map[int]int{
		colID: 16, colTime: 8, colSequence: 8, colFingerprint: 8, colHash: 8,
	} {
		if len(raw[i]) != size {
			return nil, 0, false, fmt.Errorf("column %d of a row has %d bytes, want %d", i, len(raw[i]), size)
		}
	}
	r = &record{
		ID: uuid.UUID(raw[colID]).String(), Topic: string(raw[colTopic]), Subject: string(raw[colSubject]),
		Source: string(raw[colSource]), Type: string(raw[colType]), Time: micros(raw[colTime]),
		Tenant: string(raw[colTenant]), Sequence: int64at(raw[colSequence]),
		CorrelationID: string(raw[colCorrelationID]), CausationID: string(raw[colCausationID]),
		TraceParent: string(raw[colTraceParent]), Fingerprint: int64at(raw[colFingerprint]),
		Body: append([]byte{}, raw[colBody]...),
	}
	if len(raw[colXID]) == 8 {
		xid := int64at(raw[colXID])
		r.XID = &xid
	}
	if len(raw[colPublishedAt]) == 8 && len(raw[colPartition]) == 4 && len(raw[colOffset]) == 8 {
		marked = true
		r.PublishedAt = micros(raw[colPublishedAt])
		r.Partition = int32(binary.BigEndian.Uint32(raw[colPartition]))
		r.Offset = int64at(raw[colOffset])
	}
	return r, int64at(raw[colHash]), marked, nil
}

func int64at(b []byte) int64 { return int64(binary.BigEndian.Uint64(b)) }

// epoch is 2000-01-01, from which Postgres counts, in Unix microseconds.
const epoch = 946_684_800_000_000

// micros is a timestamptz in Unix microseconds. The infinities, and what lies
// beyond the year 294246, become the ends of what there is.
func micros(b []byte) int64 {
	at := int64at(b)
	if at > math.MaxInt64-epoch {
		return math.MaxInt64
	}
	if at == math.MinInt64 {
		return at
	}
	return at + epoch
}

// successor is the id after id, zero after the last.
func successor(id uuid.UUID) uuid.UUID {
	for i := len(id) - 1; i >= 0; i-- {
		if id[i]++; id[i] != 0 {
			break
		}
	}
	return id
}
