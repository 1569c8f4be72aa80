package webhook

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
)

// What came of a call is to be noted while the log's row moves from the default
// partition into that of its day.
func TestAResultIsNotedWhileItsDayIsMade(t *testing.T) {
	w := newWorld(t)
	called, answer := make(chan struct{}, 10), make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		called <- struct{}{}
		<-answer
	}))
	t.Cleanup(srv.Close)
	e := w.create("ana", srv.URL)
	day := time.Now().UTC().AddDate(0, 0, 20).Truncate(24 * time.Hour) // none is made so far ahead
	id := event.ForeignID("source", "1", day.Add(time.Hour))
	w.fan(Event{ID: id, Tenant: "ana", Type: "a"})
	w.run(quick)
	<-called
	w.must(pgx.BeginTxFunc(t.Context(), w.db, operatorTx, func(tx pgx.Tx) error {
		exec := func(sql string) {
			_, err := tx.Exec(t.Context(), sql)
			w.must(err)
		}
		exec(`CREATE TABLE webhook.deliveries_moved (LIKE webhook.deliveries INCLUDING ALL EXCLUDING IDENTITY EXCLUDING STATISTICS)`)
		exec(`LOCK TABLE webhook.deliveries_default IN ACCESS EXCLUSIVE MODE`)
		exec(`WITH moved AS (DELETE FROM webhook.deliveries_default RETURNING *) INSERT INTO webhook.deliveries_moved SELECT * FROM moved`)
		close(answer)
		w.until("the note waits for the move", func() bool {
			return w.count(`SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'webhook.deliveries_default'::regclass`) > 0
		})
		exec(`ALTER TABLE webhook.deliveries ATTACH PARTITION webhook.deliveries_moved FOR VALUES FROM ('` +
			event.IDFloor(day).String() + `') TO ('` + event.IDFloor(day.AddDate(0, 0, 1)).String() + `')`)
		return nil
	}))
	w.until("nothing is due", func() bool { return w.count(`SELECT count(*) FROM webhook.due`) == 0 })
	if d := w.delivery(e, id); d.State != Delivered {
		t.Errorf("it is %s for ever", d.State)
	}
}
