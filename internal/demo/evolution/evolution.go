// Package evolution shows a contract change under way: programs compiled
// against the old and the new version run side by side, and changes that would
// break one of them are refused where they are made, where they are registered
// and where a program starts.
//
// Everything is real and of its own: Postgres, broker, registry, consumer
// groups. Each step is checked; one that turns out otherwise ends the run with
// an error.
package evolution

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/bench/engine"
	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/incident"
	v1 "github.com/waybillhq/waybill/internal/demo/evolution/v1"
	v2 "github.com/waybillhq/waybill/internal/demo/evolution/v2"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/registry"
)

// level is what the product registers its events under.
const level = "FULL_TRANSITIVE"

// patience bounds each step.
const patience = 30 * time.Second

type demo struct {
	out      io.Writer
	engines  *engine.Engines
	registry *registry.Client
	producer *kgo.Client
}

// Run plays the scenario and tells it on out.
func Run(ctx context.Context, cfg engine.Config, out io.Writer) (err error) {
	d := &demo{out: out}
	if d.engines, err = engine.Start(ctx, cfg); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.engines.Close(ctx)) }()
	if err := pg.Migrate(ctx, d.engines.DB, incident.Migration(), consumer.Migrations()); err != nil {
		return err
	}
	if err := d.engines.Declare(ctx, v1.ParcelSent{}.EventContract().Topic); err != nil {
		return err
	}
	if d.registry, err = registry.New(d.engines.RegistryURL, registry.Config{}); err != nil {
		return err
	}
	defer d.registry.Close()
	if d.producer, err = d.engines.Broker.Client(kgo.ProducerLinger(0)); err != nil {
		return err
	}
	defer d.producer.Close()
	return d.play(event.WithTenant(ctx, "demo"))
}

// play is the scenario, from top to bottom.
func (d *demo) play(ctx context.Context) error {
	d.say("1", "a program compiled against version 1 reads what version 1 wrote")
	if err := d.register(ctx, v1.ParcelSent{}.EventContract()); err != nil {
		return err
	}
	old, err := startReader(ctx, d, "old", func(e event.Of[v1.ParcelSent]) string {
		return fmt.Sprintf("%s, %d g, to %s", e.Data.ParcelID, e.Data.WeightG, e.Data.To)
	})
	if err != nil {
		return err
	}
	defer old.stop()
	if err := d.send(ctx, v1.ParcelSent{ParcelID: "p1", WeightG: 300, To: "Olinda"}, v1.ParcelSent{ParcelID: "p2", WeightG: 1200, To: "Recife"}); err != nil {
		return err
	}
	if err := old.sees(ctx, "p1, 300 g, to Olinda", "p2, 1200 g, to Recife"); err != nil {
		return err
	}

	d.say("2", "version 2 adds an optional field: registered, written, and the old program goes on")
	if err := d.register(ctx, v2.ParcelSent{}.EventContract()); err != nil {
		return err
	}
	note := "fragile"
	if err := d.send(ctx, v2.ParcelSent{ParcelID: "p3", WeightG: 80, To: "Caruaru", Note: &note}); err != nil {
		return err
	}
	if err := old.sees(ctx, "p3, 80 g, to Caruaru"); err != nil {
		return err
	}

	d.say("3", "a program compiled against version 2 reads both, from the beginning")
	newer, err := startReader(ctx, d, "new", func(e event.Of[v2.ParcelSent]) string {
		note := "none"
		if e.Data.Note != nil {
			note = *e.Data.Note
		}
		return fmt.Sprintf("%s, %d g, to %s, note: %s", e.Data.ParcelID, e.Data.WeightG, e.Data.To, note)
	})
	if err != nil {
		return err
	}
	defer newer.stop()
	err = newer.sees(ctx, "p1, 300 g, to Olinda, note: none", "p2, 1200 g, to Recife, note: none", "p3, 80 g, to Caruaru, note: fragile")
	if err != nil {
		return err
	}
	if err := d.refusals(ctx); err != nil {
		return err
	}
	return d.whyFull(ctx)
}

func (d *demo) say(step, text string) { d.line("\n%s  %s", step, text) }

func (d *demo) line(format string, args ...any) {
	_, _ = fmt.Fprintf(d.out, format+"\n", args...) // told to whoever listens
}

// register does what a program does when it starts.
func (d *demo) register(ctx context.Context, c *event.Contract) error {
	ids, err := d.registry.Register(ctx, level, c)
	if err == nil {
		d.line("   registry  %s has schema id %d", c.Subject(), ids[c.Fingerprint])
	}
	return err
}

// send writes events as they were compiled.
func (d *demo) send(ctx context.Context, events ...event.Data) error {
	for _, e := range events {
		rec, err := d.record(ctx, e)
		if err != nil {
			return err
		}
		if err := d.producer.ProduceSync(ctx, rec).FirstErr(); err != nil {
			return fmt.Errorf("publish: %w", err)
		}
	}
	return nil
}

func (d *demo) record(ctx context.Context, e event.Data) (*kgo.Record, error) {
	c := e.EventContract()
	id, err := d.registry.RegisterText(ctx, c.Subject(), c.Text)
	if err != nil {
		return nil, err
	}
	rec := &kgo.Record{Topic: c.Topic, Key: []byte(e.EventKey())}
	if rec.Value, err = c.Schema.AppendEncode(registry.AppendHeader(nil, id), e); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	envelope := c.Envelope(ctx, e, time.Now())
	envelope.Headers(func(name, value string) {
		rec.Headers = append(rec.Headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
	})
	return rec, nil
}

// reader is a program that reads: a consumer group of its own.
type reader struct {
	d     *demo
	name  string
	seen  chan string
	stop  func()
	ended chan error
}

func startReader[E event.Data](ctx context.Context, d *demo, name string, tell func(event.Of[E]) string) (*reader, error) {
	r := &reader{d: d, name: name, seen: make(chan string, 100), ended: make(chan error, 1)}
	g := consumer.New(
		consumer.Deps{DB: d.engines.DB, Client: d.engines.Broker.Client, Decoder: registry.NewDecoder(d.registry)},
		consumer.Config{Group: name + "." + d.engines.Name(), Delivery: consumer.AtLeastOnce, Logger: slog.New(slog.DiscardHandler)},
	)
	consumer.OnEvent(g, func(_ context.Context, e event.Of[E]) error {
		r.seen <- tell(e)
		return nil
	})
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { defer close(done); r.ended <- g.Run(ctx) }()
	r.stop = func() { cancel(); <-done }
	return r, nil
}

// sees waits until the reader has told all of want, in any order: they are of
// different keys.
func (r *reader) sees(ctx context.Context, want ...string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var got []string
	for len(got) < len(want) {
		select {
		case text := <-r.seen:
			got = append(got, text)
		case err := <-r.ended:
			return errors.Join(err, fmt.Errorf("the %s program ended", r.name))
		case <-ctx.Done():
			return fmt.Errorf("the %s program read %q, and not %q, within %s", r.name, got, want, patience)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		return fmt.Errorf("the %s program read %q, want %q", r.name, got, want)
	}
	for _, text := range got {
		r.d.line("   %-3s reads %s", r.name, text)
	}
	return nil
}

// short is an error without the rest of its reasons: one names the place.
func short(err error) string {
	var refused *registry.IncompatibleError
	if !errors.As(err, &refused) || len(refused.Reasons) == 0 {
		return err.Error()
	}
	if n := len(refused.Reasons) - 1; n > 0 {
		return fmt.Sprintf("%s (and %d more)", refused.Reasons[0], n)
	}
	return refused.Reasons[0]
}
