package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/waybillhq/waybill/bench/push"
)

// publishing is how many requests of a publisher are under way at once.
const publishing = 64

// overHTTP is a server of streams that takes events by requests.
type overHTTP struct {
	*push.Process
	client  *http.Client
	places  chan struct{}
	path    func(channel string) string
	opened  func(line []byte) bool
	request func(ctx context.Context, address, channel string, data []byte) (*http.Request, error)
}

// startPart starts this program as a part that serves.
func startPart(ctx context.Context, part string) (*push.Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return push.Start(ctx, part, self, func(ready string) []string { return []string{playCommand, part, ready} }, nil)
}

func newOverHTTP(p *push.Process) *overHTTP {
	return &overHTTP{
		Process: p, places: make(chan struct{}, publishing),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: publishing, MaxConnsPerHost: publishing}},
	}
}

// Path implements [push.Server].
func (s *overHTTP) Path(channel string) string { return s.path(channel) }

// Opened implements [push.Server].
func (s *overHTTP) Opened(line []byte) bool { return s.opened(line) }

// Send implements [push.Server]. It waits where too many are under way.
func (s *overHTTP) Send(ctx context.Context, channel string, n, body int, done func(error)) {
	s.places <- struct{}{}
	go func() {
		defer func() { <-s.places }()
		done(s.send(ctx, channel, push.Payload(n, body)))
	}()
}

func (s *overHTTP) send(ctx context.Context, channel string, data []byte) error {
	req, err := s.request(ctx, s.Address(), channel, data)
	if err != nil {
		return err
	}
	res, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("publish: %s: %s", res.Status, strings.TrimSpace(string(answer)))
	}
	return err
}

// Stop ends the server.
func (s *overHTTP) Stop() error {
	s.client.CloseIdleConnections()
	return s.Process.Stop()
}

// atOnce is closed: a server that has nothing to load.
func atOnce() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}
