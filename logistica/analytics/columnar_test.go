package analytics_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/waybillhq/waybill/logistica/analytics/columnar"
	"github.com/waybillhq/waybill/projection"
	"github.com/waybillhq/waybill/projection/clickhouse"
	engine "github.com/waybillhq/waybill/test/clickhouse"
)

// The same events, some of them written twice, give the same figures from
// ClickHouse as from Postgres: both are compared with the events themselves.
func TestClickHouseTellsTheSameFigures(t *testing.T) {
	server := engine.Start(t)
	store, err := clickhouse.Open(server.URL(), clickhouse.Config{Linger: time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	if err := store.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx := context.WithoutCancel(t.Context())
	left := 4 // each reads some dozens of queries
	rapid.Check(t, func(r *rapid.T) {
		all := story(r, t)
		if left--; left < 0 {
			return
		}
		if err := store.Conn().Exec(ctx, "TRUNCATE TABLE events"); err != nil {
			r.Fatal(err)
		}
		es := make([]projection.Event, len(all))
		for i, f := range all {
			es[i] = f.event
		}
		cut := rapid.IntRange(0, len(es)-1).Draw(r, "cut")
		for _, part := range [][]projection.Event{es[:cut], es[cut/2:], es} {
			if err := store.Write(ctx, nil, part); err != nil {
				r.Fatal(err)
			}
		}
		compare(r, columnar.New(store.Conn()), all)
	})
}
