package dispatch

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/logistica/faults"
)

// Sender tells a courier by some other way than the product's own. It returns
// when ctx ends. It may be asked about one notice more than once, after a try
// that failed or a crash: tenant, order and attempt name it. What its errors say
// is kept and published: no secret, no phone number.
type Sender interface {
	Send(ctx context.Context, n Notice) error
}

// InProduct is the product's own way, for which the notice and its event are all
// it takes.
type InProduct struct{}

// Send has nothing to do.
func (InProduct) Send(context.Context, Notice) error { return nil }

// Attempted is what came of telling a courier, before it is written down.
type Attempted struct {
	Failure string // why the courier could not be told; empty if it could
}

// sendAllWithin bounds the tries of one notice together.
const sendAllWithin = 20 * time.Second

// Send asks the sender, before any transaction is open: it may take its time.
// What fails is no error but an answer, and the order's to hear.
func (d *Desk) Send(ctx context.Context, e event.Of[contracts.PlatformFeeBilled]) (Attempted, error) {
	if err := faults.Wait(ctx, d.cfg.Faults.Delay(faults.SlowConsumer)); err != nil {
		return Attempted{}, err
	}
	if d.cfg.Faults.Fails(faults.NotificationFailure, e.Data.OrderID.String(), strconv.FormatInt(int64(e.Data.Attempt), 10)) {
		return Attempted{Failure: "fault " + faults.NotificationFailure + " is on"}, nil
	}
	if _, own := d.cfg.Sender.(InProduct); own {
		return Attempted{}, nil
	}
	tenant, err := uuid.Parse(e.Tenant)
	if err != nil {
		return Attempted{}, consumer.Permanent(fmt.Errorf("tell of order %s: tenant %.64q: %w", e.Data.OrderID, e.Tenant, err))
	}
	n := Notice{Tenant: tenant, Order: e.Data.OrderID, Attempt: e.Data.Attempt, Courier: e.Data.CourierID, Fee: e.Data.FeeID}
	if over, err := d.over(ctx, n); over || err != nil {
		return Attempted{}, err
	}
	return d.try(ctx, n)
}

// over tells a notice that is settled, such as one that was barred: nobody is
// woken for it.
func (d *Desk) over(ctx context.Context, n Notice) (bool, error) {
	last, err := d.Notice(ctx, n.Tenant, n.Order)
	switch {
	case errors.Is(err, ErrNotFound):
		return false, nil
	case err != nil:
		return false, err
	}
	return last.Attempt >= n.Attempt, nil
}

func (d *Desk) try(ctx context.Context, n Notice) (Attempted, error) {
	all, cancel := context.WithTimeout(ctx, sendAllWithin)
	defer cancel()
	var failed error
	for tries := 1; ; tries++ {
		if failed = d.sendOnce(all, n); failed == nil {
			return Attempted{}, nil
		}
		if ctx.Err() != nil { // the group is stopping: whoever is next asks again
			return Attempted{}, ctx.Err()
		}
		if tries == d.cfg.Tries || faults.Wait(all, d.cfg.Pause<<(tries-1)) != nil {
			return Attempted{Failure: reason(failed)}, ctx.Err()
		}
	}
}

var errManySending = errors.New("it has not answered too many times, and is asked no more before it does")

// sendOnce asks the sender in a goroutine of its own: one that does not return
// when its time is over holds a place among those under way, not the handler.
func (d *Desk) sendOnce(ctx context.Context, n Notice) error {
	select {
	case d.sending <- struct{}{}:
	default:
		return errManySending
	}
	ctx, cancel := context.WithTimeout(ctx, d.cfg.SendWithin)
	defer cancel()
	answer := make(chan error, 1)
	go func() {
		defer func() { <-d.sending }()
		defer func() {
			if v := recover(); v != nil {
				answer <- fmt.Errorf("it panicked: %v", v)
			}
		}()
		answer <- d.cfg.Sender.Send(ctx, n)
	}()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return fmt.Errorf("no answer within %s: %w", d.cfg.SendWithin, ctx.Err())
	}
}

// maxReason bounds what is kept and published of a sender's error, in bytes.
const maxReason = 300

func reason(err error) string {
	text := strings.ReplaceAll(strings.ToValidUTF8(err.Error(), "�"), "\x00", "")
	if len(text) > maxReason {
		text = strings.ToValidUTF8(text[:maxReason], "")
	}
	return "the sender: " + text
}
