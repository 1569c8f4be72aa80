package registry_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/registry"
	"github.com/waybillhq/waybill/registry/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve runs a registry and counts what it is asked.
func serve(t testing.TB) (url string, asked *atomic.Int64) {
	t.Helper()
	e := brokertest.New(t)
	s := server.New(e.Config, server.Config{Topic: brokertest.Topic(t, "schemas"), Capabilities: e.Capabilities, Logger: e.Logger})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	select {
	case <-s.Ready():
	case err := <-ended:
		t.Fatal(err)
	}
	asked = new(atomic.Int64)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		s.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		web.Close()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return web.URL, asked
}

func client(t testing.TB, url string) *registry.Client {
	t.Helper()
	c, err := registry.New(url, registry.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func contract(t testing.TB, fields string) *event.Contract {
	t.Helper()
	c, err := event.NewContract("bank.events", "/bank", `{"type":"record","name":"Opened","namespace":"bank","fields":[`+fields+`]}`)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const (
	fieldA = `{"name":"a","type":"string"}`
	fieldB = `{"name":"b","type":"int","default":7}`
	fieldC = `{"name":"c","type":"int"}`
)
