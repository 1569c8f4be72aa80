package app

import (
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"
)

func TestConnectionsOpenedInAdvanceDoNotHoldUpTheStop(t *testing.T) {
	s := newStack(slog.New(slog.DiscardHandler))
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan struct{})
	serve(s, "http", &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(asked) })}, ln)
	idle, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = idle.Close() }()
	// Answered after idle was accepted.
	resp, err := http.Get("http://" + ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	<-asked
	began := time.Now()
	if err := s.stop(t.Context()); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("the stop took %s", took)
	}
}
