package fair

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

// Every order of the flood is told apart: taken, or refused and sent again.
func TestAFloodCountsWhatBecameOfItsOrders(t *testing.T) {
	var asked atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch n := asked.Add(1); {
		case n <= 10:
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
		case n == 11:
			w.WriteHeader(http.StatusInternalServerError)
		default:
			w.WriteHeader(http.StatusCreated)
		}
	}))
	defer srv.Close()
	f := startFlood(t.Context(), Config{Orders: 50, Connections: 4}, srv.URL, "key")
	got := <-f.done
	if got.taken != 49 || got.refused != 10 || got.failed != 1 || got.took <= 0 {
		t.Errorf("%+v", got)
	}
}
