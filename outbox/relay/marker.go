package relay

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/pg/wal"
)

// marker writes down what the broker acknowledged and which partitions
// stopped, and then confirms to Postgres. The order matters: an event
// confirmed but not written down would be gone.
type marker struct {
	s    *session
	copy []byte // rows on their way to the table, in COPY's binary format
	lsns []wal.LSN

	marks int // in copy
	done  int // events that are through
}

// run returns once the ledger is closed and all is written, or at the first
// error, which also ends the session.
func (m *marker) run(ctx context.Context) error {
	l := m.s.ledger
	var spare []*batch
	for {
		<-l.wake
		acked, stops, closed := l.take(spare)
		if err := m.write(ctx, acked, stops); err != nil {
			l.fail(err)
			if closed {
				return err
			}
			spare = nil
			continue // the session ends; wait for its close
		}
		end := l.written(acked, stops)
		for _, b := range acked {
			m.done += len(b.Tags)
			m.s.producer.Release(b)
		}
		clear(acked)
		spare = acked
		if end != 0 {
			m.s.confirm(end)
		}
		m.s.metrics.inFlight.Set(float64(l.inFlight()))
		if closed {
			return nil
		}
		if m.marks > 0 { // let some gather: each write is a transaction of the database's
			pause(ctx, m.s.cfg.MarkInterval)
		}
	}
}

func (m *marker) write(ctx context.Context, acked []*batch, stops []stop) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for i := range stops {
		if err := m.s.noteStop(ctx, &stops[i]); err != nil {
			return err
		}
	}
	if m.encode(acked); m.marks == 0 {
		return nil
	}
	if err := copyMarks(ctx, m.s.db, m.copy); err != nil {
		m.copy = nil // where the connection broke, the driver may still read it
		return fmt.Errorf("mark events as published: %w", err)
	}
	return nil
}

// encode makes the marks' rows, straight into the form they travel in: at
// 100,000 a second the general way costs more than all else here.
func (m *marker) encode(acked []*batch) {
	at := uint64(time.Now().UnixMicro() - postgresEpoch)
	m.copy, m.marks = append(m.copy[:0], copyHeader...), 0
	for _, b := range acked {
		m.lsns = m.s.ledger.lsns(b.Tags, m.lsns[:0])
		for i := range b.Tags {
			if !b.Tags[i].mark {
				continue
			}
			m.marks++
			offset := b.Base
			if offset >= 0 {
				offset += int64(i)
			}
			m.copy = appendMark(m.copy, b.Tags[i].id[:], at, b.Partition.Index, offset, m.lsns[i])
		}
	}
	m.copy = append(m.copy, copyTrailer...)
}

// postgresEpoch is 2000-01-01, in microseconds of Unix time.
const postgresEpoch = 946684800 * 1e6

var (
	copyHeader  = []byte("PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00")
	copyTrailer = []byte{0xff, 0xff}
)

func appendMark(b, id []byte, at uint64, partition int32, offset int64, lsn wal.LSN) []byte {
	b = binary.BigEndian.AppendUint16(b, 5)
	b = binary.BigEndian.AppendUint32(b, 16)
	b = append(b, id...)
	b = binary.BigEndian.AppendUint32(b, 8)
	b = binary.BigEndian.AppendUint64(b, at)
	b = binary.BigEndian.AppendUint32(b, 4)
	b = binary.BigEndian.AppendUint32(b, uint32(partition))
	b = binary.BigEndian.AppendUint32(b, 8)
	b = binary.BigEndian.AppendUint64(b, uint64(offset))
	b = binary.BigEndian.AppendUint32(b, 8)
	return binary.BigEndian.AppendUint64(b, uint64(lsn))
}

func copyMarks(ctx context.Context, db *pgxpool.Pool, rows []byte) error {
	conn, err := db.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	_, err = conn.Conn().PgConn().CopyFrom(ctx, bytes.NewReader(rows),
		`COPY waybill.outbox_published (id, published_at, log_partition, log_offset, commit_lsn) FROM STDIN BINARY`)
	return err
}
