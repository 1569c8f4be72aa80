package couriers_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/logistica/couriers"
	"github.com/waybillhq/waybill/logistica/tenants"
	"github.com/waybillhq/waybill/registry"
	"github.com/waybillhq/waybill/registry/server"
)

// at puts a courier somewhere, as telemetry would.
func (b *bed) at(t testing.TB, courier uuid.UUID, seq int64, lat, lng float64) {
	t.Helper()
	tx, err := b.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if _, err := tx.Exec(t.Context(), `SELECT set_config('waybill.courier', $1, true)`, courier.String()); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `INSERT INTO couriers.positions VALUES ($1, $2, $3, $4, $5)`, courier, seq, lat, lng, *b.time); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// place reads where a courier is held to be.
func (b *bed) place(t testing.TB, courier uuid.UUID) (seq int64, lat float64) {
	t.Helper()
	tx, err := b.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if _, err := tx.Exec(t.Context(), `SELECT set_config('waybill.courier', $1, true)`, courier.String()); err != nil {
		t.Fatal(err)
	}
	if err := tx.QueryRow(t.Context(), `SELECT seq, lat FROM couriers.positions WHERE courier = $1`, courier).Scan(&seq, &lat); err != nil {
		t.Fatal(err)
	}
	return seq, lat
}

// air is telemetry on a real broker with a registry.
type air struct {
	*bed
	*couriers.Telemetry
	engine  *brokertest.Engine
	decoder *registry.Decoder
	metrics *prometheus.Registry
}

func newAir(t *testing.T) *air {
	t.Helper()
	a := &air{bed: newBed(t), engine: brokertest.New(t), metrics: prometheus.NewRegistry()}
	schemas := serveRegistry(t, a.engine)
	a.decoder = registry.NewDecoder(schemas)
	topics := couriers.Topics()
	err := broker.Declare(t.Context(), a.engine.Client(t), a.engine.Capabilities, topics...)
	var drift *broker.DriftError
	if err != nil && !errors.As(err, &drift) {
		t.Fatal(err)
	}
	a.Telemetry = fly(t, couriers.TelemetryDeps{DB: a.pool, Client: a.engine.Config.Client, Schemas: schemas},
		couriers.TelemetryConfig{Now: func() time.Time { return *a.time }, Registerer: a.metrics, Logger: a.engine.Logger})
	return a
}

// fly runs telemetry for as long as the test, and waits until it takes positions
// or the registry is away.
func fly(t *testing.T, deps couriers.TelemetryDeps, cfg couriers.TelemetryConfig) *couriers.Telemetry {
	t.Helper()
	tel, err := couriers.NewTelemetry(deps, cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- tel.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return tel
}

func serveRegistry(t *testing.T, e *brokertest.Engine) *registry.Client {
	t.Helper()
	s := server.New(e.Config, server.Config{Topic: brokertest.Topic(t, "schemas"), Capabilities: e.Capabilities, Logger: e.Logger})
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	select {
	case <-s.Ready():
	case err := <-ended:
		t.Fatal(err)
	}
	web := httptest.NewServer(s)
	c, err := registry.New(web.URL, registry.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		web.Close()
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return c
}

// track sends fixes, again while telemetry is not ready.
func (a *air) track(t *testing.T, courier uuid.UUID, fixes ...couriers.Fix) (n int) {
	t.Helper()
	var err error
	until(t, func() bool {
		n, err = a.Track(t.Context(), courier, fixes)
		if err != nil && !errors.Is(err, couriers.ErrAway) {
			t.Fatal(err)
		}
		return err == nil
	}, func() string { return err.Error() })
	return n
}

func (a *air) fix(seq int64, lat float64) couriers.Fix {
	return couriers.Fix{Seq: seq, Lat: lat, Lng: pickup.Lng, At: a.time.Add(time.Duration(seq) * time.Second)}
}

// positions reads n positions of a courier from the log.
func (a *air) positions(t *testing.T, courier uuid.UUID, n int) (list []event.Of[contracts.CourierLocationUpdated]) {
	t.Helper()
	cl := a.engine.Client(t, kgo.ConsumeTopics("couriers.events"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for len(list) < n {
		fetches := cl.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			t.Fatalf("%d positions of %d: %v", len(list), n, err)
		}
		fetches.EachRecord(func(rec *kgo.Record) {
			if string(rec.Key) != courier.String() {
				return
			}
			e := event.Of[contracts.CourierLocationUpdated]{}
			var err error
			e.Envelope, err = event.ReadHeaders(len(rec.Headers), func(i int) (string, []byte) {
				return rec.Headers[i].Key, rec.Headers[i].Value
			}, rec.Timestamp, "")
			if err == nil {
				err = a.decoder.Decode(ctx, rec.Value, &e.Data, e.Data.EventContract().Schema)
			}
			if err != nil {
				t.Error(err)
			}
			if slices.ContainsFunc(rec.Headers, func(h kgo.RecordHeader) bool { return h.Key == event.HeaderSequence }) {
				t.Error("a position has a sequence")
			}
			list = append(list, e)
		})
	}
	return list
}

func TestLateAndRepeatedPositionsArePublishedAndMoveNothingBack(t *testing.T) {
	t.Parallel()
	a := newAir(t)
	rui := a.enrol(t, event.NewID())
	for _, f := range []couriers.Fix{a.fix(5, -23.5), a.fix(3, -23.3), a.fix(5, -23.9), a.fix(4, -23.4)} {
		if n := a.track(t, rui, f); n != 1 {
			t.Errorf("accepted %d", n)
		}
		if seq, lat := a.place(t, rui); seq != 5 || lat != -23.5 {
			t.Errorf("after %d: at %g by fix %d", f.Seq, lat, seq)
		}
	}
	if n := a.track(t, rui, a.fix(7, -23.7), a.fix(8, -23.8), a.fix(6, -23.6)); n != 3 {
		t.Errorf("accepted %d", n)
	}
	if seq, lat := a.place(t, rui); seq != 8 || lat != -23.8 {
		t.Errorf("at %g by fix %d", lat, seq)
	}
	var seqs []int64
	for _, e := range a.positions(t, rui, 7) {
		seqs = append(seqs, e.Data.Seq)
		if e.Tenant != tenants.Platform.String() || e.Data.ActiveOrderID != nil || e.Subject != rui.String() {
			t.Errorf("%+v", e)
		}
	}
	if !slices.Equal(seqs, []int64{5, 3, 5, 4, 7, 8, 6}) {
		t.Errorf("published %v", seqs)
	}
	a.ahead(20 * time.Minute) // the device counts anew
	a.track(t, rui, a.fix(1, -23.1))
	if seq, lat := a.place(t, rui); seq != 1 || lat != -23.1 {
		t.Errorf("after a new start at %g by fix %d", lat, seq)
	}
}

func TestAPositionIsOfTheOrderItsCourierIsOutForAndOfNobodyElse(t *testing.T) {
	t.Parallel()
	a, shop := newAir(t), event.NewID()
	rui := a.enrol(t, shop, event.NewID())
	order := a.create(t, shop)
	a.track(t, rui, a.fix(1, -23.5)) // reserved: not told yet
	a.assign(t, shop, order, rui, 1)
	a.track(t, rui, a.fix(2, -23.5))
	a.change(t, shop, order, contracts.OrderStateDelivered, 1)
	a.track(t, rui, a.fix(3, -23.5))
	for i, e := range a.positions(t, rui, 3) {
		busy := i == 1
		if (e.Tenant == shop.String()) != busy || (e.Data.ActiveOrderID != nil && *e.Data.ActiveOrderID == order) != busy {
			t.Errorf("position %d: tenant %s, order %v", i+1, e.Tenant, e.Data.ActiveOrderID)
		}
		if !busy && e.Tenant != tenants.Platform.String() {
			t.Errorf("position %d is of tenant %s", i+1, e.Tenant)
		}
	}
}

func TestImplausiblePositionsAreRefusedByName(t *testing.T) {
	t.Parallel()
	a := newAir(t)
	rui := a.enrol(t, event.NewID())
	old := couriers.Fix{Seq: 1, Lat: -23, Lng: -46, At: a.time.Add(-time.Hour - time.Second)}
	fast := float32(900)
	for field, f := range map[string]couriers.Fix{
		"positions[0].lat":       {Lat: 91, At: *a.time},
		"positions[0].lng":       {Lng: -181, At: *a.time},
		"positions[0].seq":       {Seq: -1, At: *a.time},
		"positions[0].speed_mps": {Speed: &fast, At: *a.time},
		"positions[0].fix_time":  {At: a.time.Add(2*time.Minute + time.Second)},
	} {
		_, err := a.Track(t.Context(), rui, []couriers.Fix{f})
		var bad *couriers.Invalid
		if !errors.As(err, &bad) || len(bad.Fields) != 1 || bad.Fields[0].Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	if _, err := a.Track(t.Context(), rui, []couriers.Fix{old}); err == nil {
		t.Error("only old ones")
	}
	if _, err := a.Track(t.Context(), rui, make([]couriers.Fix, 101)); err == nil {
		t.Error("101")
	}
	if n := a.track(t, rui, old, a.fix(2, -23.2)); n != 1 {
		t.Errorf("accepted %d of a report with an old one", n)
	}
	if _, err := a.Track(t.Context(), event.NewID(), []couriers.Fix{a.fix(1, -23)}); !errors.Is(err, couriers.ErrNotFound) {
		t.Errorf("a stranger: %v", err)
	}
}

func TestACourierWhoSendsTooMuchIsToldWhenToGoOn(t *testing.T) {
	t.Parallel()
	a := newAir(t)
	rui, ana := a.enrol(t, event.NewID()), a.enrol(t, event.NewID())
	report := make([]couriers.Fix, 100)
	for i := range report {
		report[i] = a.fix(int64(i), -23)
	}
	a.track(t, ana, a.fix(1, -23)) // it is ready
	sent := 0
	var fast *couriers.TooFast
	for {
		n, err := a.Track(t.Context(), rui, report)
		if errors.As(err, &fast) {
			break
		}
		if err != nil || sent > 10_000 {
			t.Fatalf("%d sent, %v", sent, err)
		}
		sent += n
	}
	if fast.RetryAfter <= 0 || fast.RetryAfter > 5*time.Second {
		t.Errorf("come back in %s", fast.RetryAfter)
	}
	a.track(t, ana, a.fix(2, -23)) // others go on
	a.ahead(fast.RetryAfter)
	if n, err := a.Track(t.Context(), rui, report); n != 100 || err != nil {
		t.Errorf("after the wait: %d, %v", n, err)
	}
}

// Nobody listens at the broker's address: what fits is taken and lost, the rest
// is refused at once, and no request waits.
func TestWithoutABrokerPositionsAreLostAndNobodyWaits(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	rui := b.enrol(t, event.NewID())
	metrics := prometheus.NewRegistry()
	away := broker.Config{Brokers: []string{"127.0.0.1:1"}, Logger: brokertest.New(t).Logger}
	tel := fly(t, couriers.TelemetryDeps{DB: b.pool, Client: away.Client, Schemas: knownSchemas{}}, couriers.TelemetryConfig{
		Rate: 1e9, MaxBuffered: 10, MaxDelay: time.Second, Registerer: metrics, Logger: away.Logger,
	})
	taken := 0
	for deadline := time.Now().Add(time.Minute); ; {
		n, err := tel.Track(t.Context(), rui, []couriers.Fix{{Seq: 1, At: time.Now()}})
		taken += n
		if errors.Is(err, couriers.ErrAway) && taken >= 10 {
			break
		}
		if err != nil && !errors.Is(err, couriers.ErrAway) || time.Now().After(deadline) {
			t.Fatalf("%d taken, %v", taken, err)
		}
	}
	until(t, func() bool { return outcome(t, metrics, "lost") >= 10 }, func() string {
		return fmt.Sprintf("lost %v", outcome(t, metrics, "lost"))
	})
	if n, err := tel.Track(t.Context(), rui, []couriers.Fix{{Seq: 2, At: time.Now()}}); n != 1 || err != nil {
		t.Errorf("once there is room: %d, %v", n, err)
	}
	if outcome(t, metrics, "refused") == 0 || outcome(t, metrics, "published") != 0 {
		t.Error("what was refused is not counted")
	}
}

// knownSchemas is a registry that has answered.
type knownSchemas struct{}

func (knownSchemas) RegisterText(context.Context, string, string) (int, error) { return 7, nil }

func outcome(t *testing.T, metrics *prometheus.Registry, name string) float64 {
	t.Helper()
	all, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all[0].Metric {
		if m.Label[0].GetValue() == name {
			return m.Counter.GetValue()
		}
	}
	return -1
}
