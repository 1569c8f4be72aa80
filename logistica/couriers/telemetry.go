package couriers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/contracts"
)

// ErrAway is positions that were not taken, since the broker takes none. Newer
// ones are worth more than these.
var ErrAway = errors.New("positions are not taken just now")

// Schemas gives the registry's id of a schema. A registry.Client does.
type Schemas interface {
	RegisterText(ctx context.Context, subject, text string) (int, error)
}

// TelemetryDeps is what telemetry cannot do without.
type TelemetryDeps struct {
	DB      *pgxpool.Pool
	Client  func(opts ...kgo.Opt) (*kgo.Client, error) // a broker.Config's method
	Schemas Schemas
}

// TelemetryConfig is what may be set; its zero value works.
type TelemetryConfig struct {
	// Rate bounds the positions of one courier, each second in the long run; 20
	// if zero. Three full reports may come at once.
	Rate float64
	// MaxBuffered bounds the positions on their way to the broker, 20 000 if
	// zero.
	MaxBuffered int
	// MaxDelay is how long one may be on its way before it is dropped, 5 s if
	// zero, at least 1 s.
	MaxDelay time.Duration
	// Now is the clock, time.Now if nil.
	Now        func() time.Time
	Registerer prometheus.Registerer // takes the metrics, nobody if nil
	Logger     *slog.Logger          // slog.Default() if nil
}

// Telemetry takes the positions of couriers and publishes them, past the outbox:
// no fact rests on one, and there are more of them than of all else. It is safe
// for concurrent use.
//
// A position may be lost, without a word to the device that sent it: after it
// was accepted, when the broker does not take it within MaxDelay.
type Telemetry struct {
	db       *pgxpool.Pool
	client   *kgo.Client
	schemas  Schemas
	cfg      TelemetryConfig
	contract *event.Contract
	pace     *pace
	outcomes *prometheus.CounterVec

	schema atomic.Int64 // the registry's id, 0 until it is known
	flying atomic.Int64 // positions the client holds
}

// linger is how long a position waits for others to travel with.
const linger = 50 * time.Millisecond

// maxPaced bounds the couriers whose rate is remembered.
const maxPaced = 100_000

// NewTelemetry makes telemetry that takes nothing until [Telemetry.Run] has
// asked the registry.
func NewTelemetry(deps TelemetryDeps, cfg TelemetryConfig) (*Telemetry, error) {
	if cfg.Rate == 0 {
		cfg.Rate = 20
	}
	if cfg.MaxBuffered == 0 {
		cfg.MaxBuffered = 20_000
	}
	if cfg.MaxDelay == 0 {
		cfg.MaxDelay = 5 * time.Second
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	// Without numbers that tell the broker of a repetition: a record whose number
	// may have been taken cannot be given up, and these must be.
	client, err := deps.Client(kgo.ProducerLinger(linger), kgo.RecordDeliveryTimeout(cfg.MaxDelay),
		kgo.MaxBufferedRecords(cfg.MaxBuffered), kgo.DisableIdempotentWrite(), kgo.RequiredAcks(kgo.LeaderAck()))
	if err != nil {
		return nil, fmt.Errorf("client for positions: %w", err)
	}
	t := &Telemetry{
		db: deps.DB, client: client, schemas: deps.Schemas, cfg: cfg,
		contract: contracts.CourierLocationUpdated{}.EventContract(), pace: newPace(cfg.Rate, maxPaced),
		outcomes: newOutcomes(),
	}
	if cfg.Registerer != nil {
		if err := cfg.Registerer.Register(t.outcomes); err != nil {
			client.Close()
			return nil, fmt.Errorf("metrics of positions: %w", err)
		}
	}
	return t, nil
}

// askAgain is how long the registry is left alone after it could not be asked.
const askAgain = time.Second

// Run asks the registry for the schema, and when ctx ends gives what is on its
// way a moment and closes.
func (t *Telemetry) Run(ctx context.Context) error {
	defer t.client.Close()
	for {
		id, err := t.schemas.RegisterText(ctx, t.contract.Subject(), t.contract.Text)
		if err == nil {
			t.schema.Store(int64(id))
			break
		}
		if ctx.Err() == nil {
			t.cfg.Logger.WarnContext(ctx, "positions are refused until the registry knows their schema", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(askAgain):
		}
	}
	<-ctx.Done()
	t.schema.Store(0) // no more
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), askAgain)
	defer cancel()
	_ = t.client.Flush(last) // what is not taken by then is lost, which positions may be
	return nil
}
