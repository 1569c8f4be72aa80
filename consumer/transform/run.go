package transform

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/registry"
)

// Run transforms until ctx ends, and returns nil once handlers have finished or
// Config.Drain is over, what they made is committed or aborted, and nothing it
// started runs on. It returns early only for what waiting cannot mend:
// broker.ErrNoTransactions is one.
func (g *Group) Run(ctx context.Context) error {
	err := g.check()
	if err == nil {
		err = g.run(ctx)
	}
	if err != nil {
		return fmt.Errorf("transforming group %s: %w", g.cfg.Group, err)
	}
	return nil
}

func (g *Group) run(ctx context.Context) error {
	if err := g.prepare(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	id := g.transactionalID()
	for failures := 0; ctx.Err() == nil; failures++ {
		progress, err := g.session(ctx, id)
		if err == nil || ctx.Err() != nil {
			return nil //nolint:nilerr // at the end of ctx nothing is lost: what was not committed is read again
		}
		if progress {
			failures = 0
		}
		g.meter.ended("failed")
		g.outage(ctx, fmt.Errorf("%w%s", err, g.hint(err)))
		pause(ctx, backoff(outagePause, outageMax, failures))
	}
	return nil
}

// transactionalID is under which this member's transactions are: one that begins
// under it ends what another left open.
func (g *Group) transactionalID() string {
	member := g.cfg.Member
	if member == "" {
		member = uuid.NewString()
	}
	return "waybill.transform." + g.cfg.Group + "." + member
}

// hint says what may be behind a transaction that was taken away.
func (g *Group) hint(err error) string {
	if !errors.Is(err, kerr.ProducerFenced) && !errors.Is(err, kerr.InvalidProducerEpoch) {
		return ""
	}
	if g.cfg.Member == "" {
		return fmt.Sprintf(" (it took longer than Config.TransactionTimeout, %s)", g.cfg.TransactionTimeout)
	}
	return fmt.Sprintf(" (it took longer than Config.TransactionTimeout, %s, or another process runs as member %q: give each a name of its own)",
		g.cfg.TransactionTimeout, g.cfg.Member)
}

// prepare waits for broker and registry, and learns from them what must be known
// before the group is joined.
func (g *Group) prepare(ctx context.Context) error {
	for n := 0; ; n++ {
		err := g.able(ctx)
		if err == nil {
			err = g.register(ctx)
		}
		var refused *registry.IncompatibleError
		switch {
		case err == nil, ctx.Err() != nil:
			return nil //nolint:nilerr // run sees that ctx is over
		case errors.Is(err, broker.ErrNoTransactions), errors.Is(err, broker.ErrNoBrokers),
			errors.Is(err, registry.ErrInvalidSchema), errors.As(err, &refused):
			return err
		}
		g.outage(ctx, err)
		pause(ctx, backoff(outagePause, outageMax, n))
	}
}

// able refuses a broker without transactions.
func (g *Group) able(ctx context.Context) error {
	cl, err := g.deps.Broker.Client()
	if err != nil {
		return err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	caps, err := broker.AskCapabilities(ctx, cl)
	if err == nil && !caps.Transactions {
		return fmt.Errorf("%w: the one built into waybill could not keep them across a crash. "+
			"Run this group on Kafka or Redpanda; or handle the events with consumer.On, "+
			"and add what you make of them to an outbox in the handler's transaction", broker.ErrNoTransactions)
	}
	return err
}

// outage tells that infrastructure is missing.
func (g *Group) outage(ctx context.Context, err error) {
	g.meter.outages.Inc()
	g.log.WarnContext(ctx, "waiting: what is needed cannot be had", "error", err)
}
