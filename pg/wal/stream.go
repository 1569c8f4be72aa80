// Package wal reads a logical replication slot: the connection, the confirmed
// position and the pgoutput messages on it.
//
// It promises that the server hears of progress every status interval however
// long the reader is held up, that a position is confirmed only if somebody
// called [Stream.Confirm] with it, and that reading allocates nothing per row.
// It does not reconnect: a lost connection is the caller's to reopen.
package wal

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// LSN is a position in the write-ahead log.
type LSN = pglogrepl.LSN

// Config names what to read and how often to report.
type Config struct {
	// Conn says how to reach the database. The role needs REPLICATION.
	Conn        *pgconn.Config
	Slot        string
	Publication string
	// Messages has logical messages sent too; see [MessageHandler].
	Messages bool
	// Text has values sent as text, as a query would print them under the
	// role's own settings. Otherwise they come in binary where their type has
	// such a form.
	Text bool
	// StatusInterval is how often the confirmed position is sent, 100 ms if
	// zero. The server recycles WAL by it. More than a second also makes
	// keepalives that rare.
	StatusInterval time.Duration
	// SenderTimeout is after how long without a word from us the server lets
	// go of the slot, 10 s if zero. A host that dies holds the slot that long.
	// We let go of a server that took nothing from us for three times as long
	// (on Linux).
	SenderTimeout time.Duration
}

// Stream is one open replication connection. [Stream.Next] is for one
// goroutine; Confirm and Confirmed for any.
type Stream struct {
	conn      *pgconn.PgConn
	confirmed atomic.Uint64
	reply     chan struct{} // the server asked for a status at once
	stop      context.CancelFunc
	reporting sync.WaitGroup
	failure   atomic.Pointer[error]
	interrupt interrupt // of Next
}

// ErrSlotInUse tells that another process reads the slot.
var ErrSlotInUse = errors.New("replication slot is in use")

// ErrSlotMissing tells that the slot does not exist.
var ErrSlotMissing = errors.New("replication slot does not exist")

// ErrPublicationMissing tells that the publication did not exist when the WAL
// to be read was written. The slot never gets past that, not even when there is
// a publication of that name again.
var ErrPublicationMissing = errors.New("publication did not exist at this point of the WAL")

// SQLSTATEs of a stream whose publication is missing: servers before 18 end
// it, later ones warn and leave the rows out.
const (
	undefinedObject    = "42704"
	publicationSkipped = "55000"
)

func serverError(m *pgproto3.ErrorResponse) error {
	err := pgconn.ErrorResponseToPgError(m)
	if err.Code == undefinedObject {
		return fmt.Errorf("replication: %w: %w", ErrPublicationMissing, err)
	}
	return fmt.Errorf("replication: %w", err)
}

// Open connects and starts reading at the slot's confirmed position.
func Open(ctx context.Context, cfg Config) (*Stream, error) {
	conn, err := connect(ctx, cfg)
	if err != nil {
		return nil, err
	}
	err = pglogrepl.StartReplication(ctx, conn, pgx.Identifier{cfg.Slot}.Sanitize(), 0, pglogrepl.StartReplicationOptions{
		Mode: pglogrepl.LogicalReplication,
		PluginArgs: []string{
			"proto_version '1'",
			fmt.Sprintf("binary '%t'", !cfg.Text),
			fmt.Sprintf("messages '%t'", cfg.Messages),
			"publication_names " + literal(pgx.Identifier{cfg.Publication}.Sanitize()),
		},
	})
	if err != nil {
		_ = conn.Close(context.WithoutCancel(ctx))
		return nil, startError(cfg.Slot, err)
	}
	s := &Stream{conn: conn, reply: make(chan struct{}, 1)}
	reportCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = stop
	s.reporting.Go(func() { s.report(reportCtx, orDefault(cfg.StatusInterval, 100*time.Millisecond)) })
	return s, nil
}

func connect(ctx context.Context, cfg Config) (*pgconn.PgConn, error) {
	pc := cfg.Conn.Copy()
	pc.RuntimeParams["replication"] = "database"
	pc.RuntimeParams["application_name"] = cfg.Slot
	pc.DialFunc = gather(pc.DialFunc)
	conn, err := pgconn.ConnectConfig(ctx, pc)
	if err != nil {
		return nil, fmt.Errorf("replication connection: %w", err)
	}
	timeout := orDefault(cfg.SenderTimeout, 10*time.Second)
	if err := limitSilence(conn.Conn(), 3*timeout); err != nil {
		_ = conn.Close(context.WithoutCancel(ctx))
		return nil, fmt.Errorf("replication connection: limit silence: %w", err)
	}
	ms := timeout.Milliseconds()
	_, err = conn.Exec(ctx, fmt.Sprintf("SET wal_sender_timeout = %d", ms)).ReadAll()
	if err != nil {
		_ = conn.Close(context.WithoutCancel(ctx))
		return nil, fmt.Errorf("set wal_sender_timeout: %w", err)
	}
	return conn, nil
}

// literal is text as the replication protocol's commands quote it.
func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

func startError(slot string, err error) error {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch pg.Code {
		case "55006":
			return fmt.Errorf("%w: %s", ErrSlotInUse, slot)
		case "42704":
			return fmt.Errorf("%w: %s", ErrSlotMissing, slot)
		}
	}
	return fmt.Errorf("start replication on slot %s: %w", slot, err)
}

// Frame is one message of the stream: either a pgoutput message or word of
// how far the server has read.
type Frame struct {
	// Data is the pgoutput message, nil in a keepalive. It is valid until the
	// next call of Next.
	Data []byte
	// WALEnd, in a keepalive: every transaction that committed before it and
	// concerns the slot has been sent.
	WALEnd LSN
}

// Next waits for the next message. It returns ctx's error when ctx ends. On a
// quiet stream a keepalive comes about once a second.
func (s *Stream) Next(ctx context.Context) (Frame, error) {
	s.interrupt.watch(ctx, s.conn.Conn())
	for {
		msg, err := s.conn.ReceiveMessage(context.Background()) //nolint:contextcheck // see interrupt
		if err != nil {
			return Frame{}, s.readError(ctx, err)
		}
		switch m := msg.(type) {
		case *pgproto3.CopyData:
			f, err := s.frame(m.Data)
			if err != nil || f.Data != nil || f.WALEnd != 0 {
				return f, err
			}
		case *pgproto3.ErrorResponse:
			return Frame{}, serverError(m)
		case *pgproto3.NoticeResponse:
			if m.Code == publicationSkipped {
				return Frame{}, fmt.Errorf("%w: %s", ErrPublicationMissing, m.Message)
			}
		case *pgproto3.CopyDone:
			return Frame{}, errors.New("replication: server ended the stream")
		}
	}
}

func (s *Stream) readError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if f := s.failure.Load(); f != nil {
		return *f
	}
	return fmt.Errorf("read replication stream: %w", err)
}

// Sizes of the headers before a pgoutput message and in a keepalive.
const (
	xlogHeader    = 24
	keepaliveSize = 17
)

func (s *Stream) frame(b []byte) (Frame, error) {
	if len(b) == 0 {
		return Frame{}, errors.New("replication: empty message")
	}
	switch kind, b := b[0], b[1:]; kind {
	case pglogrepl.XLogDataByteID:
		if len(b) <= xlogHeader {
			return Frame{}, fmt.Errorf("replication: data message of %d bytes", len(b))
		}
		return Frame{Data: b[xlogHeader:]}, nil
	case pglogrepl.PrimaryKeepaliveMessageByteID:
		if len(b) != keepaliveSize {
			return Frame{}, fmt.Errorf("replication: keepalive of %d bytes", len(b))
		}
		if b[16] == 1 {
			s.answer()
		}
		return Frame{WALEnd: LSN(binary.BigEndian.Uint64(b))}, nil
	default:
		return Frame{}, fmt.Errorf("replication: unknown message %q", kind)
	}
}

func (s *Stream) answer() {
	select {
	case s.reply <- struct{}{}:
	default:
	}
}

// Confirm tells the server, at the next status, that everything that
// committed before end is safe elsewhere and need not be sent again.
func (s *Stream) Confirm(end LSN) {
	for {
		old := s.confirmed.Load()
		if uint64(end) <= old || s.confirmed.CompareAndSwap(old, uint64(end)) {
			return
		}
	}
}

// PID is the server's process that sends the stream: pg_replication_slots has
// it as active_pid while the stream lives.
func (s *Stream) PID() uint32 { return s.conn.PID() }

// Confirmed is the highest position given to Confirm.
func (s *Stream) Confirmed() LSN { return LSN(s.confirmed.Load()) }

// ServerVersion is the server's major version, such as 15; 0 if it does not
// say.
func (s *Stream) ServerVersion() int {
	v := s.conn.ParameterStatus("server_version")
	n := strings.IndexFunc(v, func(c rune) bool { return c < '0' || c > '9' })
	if n < 0 {
		n = len(v)
	}
	major, _ := strconv.Atoi(v[:n])
	return major
}

// report sends the confirmed position until ctx ends, when it moved and at
// least once a second. It has a goroutine of its own: a reader held up by a
// slow broker would otherwise be taken for dead by the server after
// wal_sender_timeout.
//
// Once a second it also asks for a keepalive, which wakes the reader. By itself
// the server sends one only when it has nothing to do at all and half of
// wal_sender_timeout has passed.
func (s *Stream) report(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	var sent LSN
	var woken time.Time // when a keepalive was last asked for
	for {
		asked := false
		select {
		case <-ctx.Done():
			return
		case <-s.reply:
			asked = true
		case <-tick.C:
		}
		now := s.Confirmed()
		wake := time.Since(woken) >= time.Second-every/2 // not a whole tick late
		if !asked && now == sent && !wake {
			continue
		}
		if err := s.send(now, wake); err != nil {
			err = fmt.Errorf("report confirmed position: %w", err)
			s.failure.Store(&err)
			_ = s.conn.Conn().Close() // wakes the reader, which reports err
			return
		}
		sent = now
		if wake {
			woken = time.Now()
		}
	}
}

// send reports position p. Zero would be read as "nothing yet", which is what
// it means. With wake, the server answers with a keepalive.
func (s *Stream) send(p LSN, wake bool) error {
	status := []byte{pglogrepl.StandbyStatusUpdateByteID}
	for range 3 { // written, flushed, applied
		status = binary.BigEndian.AppendUint64(status, uint64(p))
	}
	status = binary.BigEndian.AppendUint64(status, uint64(time.Now().UnixMicro()-postgresEpoch))
	answer := byte(0)
	if wake {
		answer = 1
	}
	return s.write(&pgproto3.CopyData{Data: append(status, answer)})
}

// postgresEpoch is 2000-01-01, in microseconds of Unix time.
const postgresEpoch = 946684800 * 1e6

// write goes past the driver's buffer: when a read fails, the driver takes
// leave of the server from a goroutine of its own, which would use it too.
func (s *Stream) write(m pgproto3.FrontendMessage) error {
	b, err := m.Encode(nil)
	if err == nil {
		_, err = s.conn.Conn().Write(b)
	}
	return err
}

// Close sends the last confirmed position, waits until the server has taken
// it and closes the connection. ctx bounds it.
func (s *Stream) Close(ctx context.Context) {
	s.stop()
	s.reporting.Wait()
	s.interrupt.release(s.conn.Conn())
	if s.failure.Load() == nil && s.send(s.Confirmed(), false) == nil {
		s.finish(ctx)
	}
	_ = s.conn.Close(ctx)
}

// finish ends the stream in good order. Closing the socket with data unread
// would reset it, and the server might not read the last position.
func (s *Stream) finish(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if s.write(&pgproto3.CopyDone{}) != nil {
		return
	}
	for {
		msg, err := s.conn.ReceiveMessage(ctx)
		if err != nil {
			return
		}
		switch msg.(type) {
		case *pgproto3.CopyDone, *pgproto3.CommandComplete, *pgproto3.ErrorResponse:
			return
		}
	}
}

func orDefault(d, def time.Duration) time.Duration {
	if d == 0 {
		return def
	}
	return d
}
