package ledger

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/pg"
)

// A slot keeps the WAL of the whole server, of databases too that the relay has
// no part in. Its own being idle must not fill the disk.
func TestIdleOutboxKeepsNoWALOfABusyDatabase(t *testing.T) {
	beside(t)
	h := newHouse(t, modes[0])
	h.startRelay()
	h.begin()
	admin := h.pool(h.database.server().AdminDSN())
	if _, err := admin.Exec(t.Context(), `CREATE DATABASE busy`); err != nil {
		t.Fatal(err)
	}
	busy := h.pool(h.database.server().AdminDSN() + "&database=busy")
	if _, err := busy.Exec(t.Context(), `CREATE TABLE filler (v text)`); err != nil {
		t.Fatal(err)
	}
	const round, rounds = 16 << 20, 4
	for range rounds {
		if _, err := busy.Exec(t.Context(), `INSERT INTO filler SELECT repeat('x', 1000) FROM generate_series(1, 15000)`); err != nil {
			t.Fatal(err)
		}
		written, err := ask[string](t.Context(), admin, `SELECT pg_current_wal_lsn()::text`)
		h.must(err)
		h.eventually(time.Minute, func() (bool, string) {
			// A checkpoint notes the open transactions, from which the slot
			// learns what it need not keep. Servers make one every five minutes.
			if _, err := admin.Exec(t.Context(), `CHECKPOINT`); err != nil {
				t.Fatal(err)
			}
			behind, kept := h.slotLag(admin, written)
			return behind <= 0 && kept < round, fmt.Sprintf("the slot's confirmed position is %d bytes behind, and it keeps %d", behind, kept)
		})
	}
	h.probeAgain()
}

func (h *house) slotLag(admin *pgxpool.Pool, written string) (behind, kept int64) {
	h.t.Helper()
	h.must(admin.QueryRow(h.t.Context(), `SELECT ($1::pg_lsn - confirmed_flush_lsn)::bigint, ($1::pg_lsn - restart_lsn)::bigint
		FROM pg_replication_slots`, written).Scan(&behind, &kept))
	return behind, kept
}

func (h *house) pool(dsn string) *pgxpool.Pool {
	h.t.Helper()
	db, err := pg.Open(h.t.Context(), dsn, pg.Config{MaxConns: 2})
	h.must(err)
	h.t.Cleanup(db.Close)
	return db
}
