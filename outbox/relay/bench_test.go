package relay_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/waybillhq/waybill/outbox/relay"
	"github.com/waybillhq/waybill/pg/pgtest"
)

const benchRows = 100_000

// BenchmarkDrain is a backlog of 100,000 events of 300 bytes, ten a commit,
// drained to the embedded broker with its marks written, beside pg_recvlogical
// reading the same WAL into nothing. Metrics: events/s of both, and the most
// memory this process had, the broker's included.
//
//	go test ./outbox/relay -run xxx -bench Drain -benchtime 3x
func BenchmarkDrain(b *testing.B) {
	w := newWorldOn(b, pgtest.New(b))
	stop := w.relay()
	w.add("a", 1)
	w.marked(1)
	stop()
	_, err := w.db.Exec(b.Context(), `CREATE TABLE pattern AS SELECT * FROM waybill.outbox_events`)
	must(b, err)
	_, err = w.db.Exec(b.Context(), `SELECT pg_create_logical_replication_slot('beside', 'pgoutput')`)
	must(b, err)
	var ours, theirs time.Duration
	done := 1
	for range b.N {
		b.StopTimer()
		w.fill()
		theirs += w.recvlogical()
		b.StartTimer()
		began := time.Now()
		done += benchRows
		w.drain(done)
		ours += time.Since(began)
	}
	n := float64(b.N * benchRows)
	b.ReportMetric(n/ours.Seconds(), "events/s")
	b.ReportMetric(n/theirs.Seconds(), "recvlogical/s")
	b.ReportMetric(peakMiB(), "peak-MiB")
}

// fill adds the backlog.
func (w *world) fill() {
	w.t.Helper()
	_, err := w.db.Exec(w.t.Context(), fmt.Sprintf(`DO $do$ BEGIN FOR c IN 1..%d LOOP
		INSERT INTO waybill.outbox_events
		SELECT (lpad(to_hex((extract(epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0') || '7' || substr(md5(random()::text), 1, 19))::uuid,
			topic, 'account-' || (c * 10 + i) %% 5000, source, type, clock_timestamp(), tenant, c, gen_random_uuid()::text, gen_random_uuid()::text,
			trace_parent, schema_fingerprint, decode(repeat('2a', 300), 'hex')
		FROM generate_series(1, 10) i, pattern;
		COMMIT;
	END LOOP; END $do$`, benchRows/10))
	must(w.t, err)
}

// drain runs a relay until there are n marks.
func (w *world) drain(n int) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	r := relay.New(w.db, w.engine.Config.Client, schemaID(7), relay.Config{Logger: slog.New(slog.DiscardHandler)})
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for ; ; <-tick.C {
		var got int
		must(w.t, w.db.QueryRow(ctx, `SELECT count(*) FROM waybill.outbox_published`).Scan(&got))
		if got >= n {
			break
		}
	}
	cancel()
	must(w.t, <-done)
}

// recvlogical is how long pg_recvlogical takes for the same WAL.
func (w *world) recvlogical() time.Duration {
	w.t.Helper()
	var end string
	must(w.t, w.db.QueryRow(w.t.Context(), `SELECT pg_current_wal_lsn()::text`).Scan(&end))
	cmd := exec.CommandContext(w.t.Context(), "pg_recvlogical", "-d", w.db.Config().ConnString(), "--slot", "beside", "--start", "--no-loop",
		"-f", "/dev/null", "--endpos", end, "-o", "proto_version=1", "-o", "binary=true", "-o", "publication_names=waybill_outbox")
	began := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		w.t.Skipf("pg_recvlogical: %v: %s", err, out)
	}
	return time.Since(began)
}

// peakMiB is this process' highest resident memory, on Linux.
func peakMiB() float64 {
	b, _ := os.ReadFile("/proc/self/status")
	_, rest, _ := strings.Cut(string(b), "VmHWM:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kb, _ := strconv.ParseFloat(fields[0], 64)
	return kb / 1024
}
