package relay

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/bench/child"
)

// NoMarksCommand, under `waybill bench`, is a relay that publishes and confirms
// without writing marks. It is for this measurement alone, hidden and no
// setting of `waybill run relay`: such events look unpublished.
const NoMarksCommand = "relay-without-marks"

// marking is whether a relay marks what it published.
type marking bool

const (
	marks   marking = true
	noMarks marking = false
)

// Start starts a relay, of Waybill's own binary program, and returns at once.
func (o *Outbox) Start(ctx context.Context, program string) (*child.Process, error) {
	return o.start(ctx, program, marks)
}

func (o *Outbox) start(ctx context.Context, program string, m marking) (*child.Process, error) {
	env := append(o.engines.Env(), "WAYBILL_OUTBOX_RELAY="+o.mode.relay, "WAYBILL_OUTBOX_EXACTLY_ONCE="+strconv.FormatBool(o.mode.exact))
	if m == noMarks {
		return child.Start(ctx, "the relay without marks", program, []string{"bench", NoMarksCommand}, env)
	}
	return child.Start(ctx, "waybill run relay", program, []string{"run", "relay", "--log-level", "warn"}, env)
}

// MakeSlot runs a relay until its replication slot is there and all from before
// it is published. What commits from then on is read from the slot, by the next
// relay.
func (o *Outbox) MakeSlot(ctx context.Context, program string) (err error) {
	p, err := o.Start(ctx, program)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	return errors.Join(o.reading(ctx, p), o.complete(ctx, p))
}

// with runs fn beside a relay, which is then stopped in order.
func (r *run) with(ctx context.Context, m marking, fn func(p *child.Process) error) (err error) {
	p, err := r.outbox.start(ctx, r.cfg.Engines.Program, m)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	return fn(p)
}

// reading waits until the relay has its slot open: from there on it is the
// relay that takes the time. Without a slot there is nothing to wait for.
func (o *Outbox) reading(ctx context.Context, p *child.Process) error {
	if !o.mode.slot {
		return nil
	}
	return await(ctx, p, 2*time.Millisecond, func(ctx context.Context) (active bool, err error) {
		// A slot that is being made is active, too, but of no use yet.
		err = o.engines.DB.QueryRow(ctx, `SELECT active AND confirmed_flush_lsn IS NOT NULL
			FROM pg_replication_slots WHERE slot_name = $1`, slotOf(o.engines)).Scan(&active)
		if errors.Is(err, pgx.ErrNoRows) {
			return false, nil
		}
		return active, err
	})
}

// complete waits until a new slot's relay has published what was there before
// it. What commits meanwhile may be published twice, which is no fault of what
// is measured.
func (o *Outbox) complete(ctx context.Context, p *child.Process) error {
	if !o.mode.slot || !o.mode.table {
		return nil
	}
	return await(ctx, p, 5*time.Millisecond, func(ctx context.Context) (yes bool, err error) {
		err = o.engines.DB.QueryRow(ctx, `SELECT EXISTS (SELECT FROM waybill.outbox_slots WHERE slot = $1)`, slotOf(o.engines)).Scan(&yes)
		return yes, err
	})
}

// confirmed waits until the relay has confirmed b to the server, so that the
// next one does not read it again: we empty the table in which it would find
// that it is published.
func (r *run) confirmed(ctx context.Context, p *child.Process, b Backlog) error {
	if !r.mode.slot {
		return nil
	}
	return await(ctx, p, 20*time.Millisecond, func(ctx context.Context) (yes bool, err error) {
		err = r.engines.DB.QueryRow(ctx, `SELECT confirmed_flush_lsn >= $2::pg_lsn FROM pg_replication_slots WHERE slot_name = $1`,
			r.slot, b.end).Scan(&yes)
		return yes, err
	})
}

// Marked counts the marks.
func (o *Outbox) Marked(ctx context.Context) (n int64, err error) {
	err = o.engines.DB.QueryRow(ctx, `SELECT count(*) FROM waybill.outbox_published`).Scan(&n)
	return n, err
}

// clear empties the outbox's tables, of a relay that does not run. The next
// count of marks then begins at nothing and costs little.
func (r *run) clear(ctx context.Context) error {
	_, err := r.engines.DB.Exec(ctx, `TRUNCATE waybill.outbox_events, waybill.outbox_published`)
	return err
}
