package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/waybillhq/waybill/logistica/sim"
)

// shop takes orders of one key.
func shop(t *testing.T, made *atomic.Int64) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/orders", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer mine" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, `{"id":"%d","tracking_token":"t"}`, made.Add(1))
	})
	mux.HandleFunc("GET /v1/me", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer mine" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	mux.HandleFunc("POST /v1/orders/{id}/transitions", func(http.ResponseWriter, *http.Request) {})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}

func simulate(t *testing.T, args ...string) (out string, err error) {
	t.Helper()
	root := newRoot()
	var b bytes.Buffer
	root.SetOut(&b)
	root.SetErr(&b)
	root.SetArgs(append([]string{"sim", "--dir", t.TempDir()}, args...))
	err = root.ExecuteContext(t.Context())
	return b.String(), err
}

func TestSimTellsWhatItDid(t *testing.T) {
	var made atomic.Int64
	url := shop(t, &made)
	out, err := simulate(t, "--url", url, "--key", "mine", "--rate", "max", "--speed", "600", "--duration", "2s", "--json")
	if err != nil {
		t.Fatal(err)
	}
	var s sim.Stats
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	if s.Orders.Made == 0 || s.Orders.Made > made.Load() || s.Speed != 600 || s.Seed != 1 {
		t.Errorf("%d taken, told %+v", made.Load(), s)
	}
	out, err = simulate(t, "--url", url, "--key", "mine", "--rate", "max", "--duration", "100ms")
	if err != nil || !strings.Contains(out, "orders made") || strings.Contains(out, "\x1b") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestSimSaysWhatIsMissing(t *testing.T) {
	for _, c := range []struct {
		args  string
		usage bool
		says  string
	}{
		{"", false, "start one with"},
		{"--url http://127.0.0.1:1", true, "waybill tenant create"},
		{"--url http://127.0.0.1:1 --key a --merchants 2", true, "--key"},
		{"--url http://127.0.0.1:1 --key a --couriers 1", true, "--courier-key"},
		{"--url http://127.0.0.1:1 --key a --rate often", true, "--rate"},
		{"--url http://127.0.0.1:1 --key a --speed 1000", true, "1 to 600"},
	} {
		_, err := simulate(t, strings.Fields(c.args)...)
		var usage usageError
		if err == nil || errors.As(err, &usage) != c.usage || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.args, err)
		}
	}
	var made atomic.Int64
	for at, says := range map[string]string{shop(t, &made): "the 1st --key opens nothing at", "http://127.0.0.1:1": "cannot reach http://127.0.0.1:1"} {
		if _, err := simulate(t, "--url", at, "--key", "stolen", "--duration", "1s"); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", at, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := runSim(ctx, sim.Keys{Merchants: []string{"stolen"}}, sim.Config{URL: shop(t, &made), Merchants: 1, Couriers: -1, Max: true}, &bytes.Buffer{})
	if err == nil || !strings.Contains(err.Error(), "does not take a key") {
		t.Error(err)
	}
}

func TestSimTellsInOneLineHowItStands(t *testing.T) {
	now := sim.Stats{Wall: 11, To: time.Date(2026, 5, 1, 12, 47, 0, 0, time.UTC), Errors: 1}
	now.Orders = sim.Orders{Made: 120, Active: 14, Delivered: 98, Failed: 3}
	now.Couriers.Riding, now.Pings.Sent = 18, 2640
	got := simText(sim.Stats{Wall: 10, Pings: sim.Pings{Sent: 2400}}, now)
	if want := "Fri 12:47   orders 120 made, 14 active, 98 delivered, 3 failed   couriers 18 riding   240 pings/s   1 error"; got != want {
		t.Errorf("%q", got)
	}
}
