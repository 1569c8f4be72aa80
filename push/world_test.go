package push_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/push"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must come.
const patience = 2 * time.Minute

// world is a broker with one topic and a producer.
type world struct {
	*brokertest.Engine
	topic string
	cl    *kgo.Client
	adm   *kadm.Client
}

func newWorld(t testing.TB, partitions int32) *world {
	t.Helper()
	w := &world{Engine: brokertest.New(t), topic: brokertest.Topic(t, "things")}
	w.cl = w.Client(t, kgo.ProducerLinger(0))
	w.adm = kadm.NewClient(w.cl)
	w.create(t, partitions)
	return w
}

func (w *world) create(t testing.TB, partitions int32) {
	t.Helper()
	if _, err := w.adm.CreateTopic(t.Context(), partitions, -1, nil, w.topic); err != nil {
		t.Fatal(err)
	}
}

// thing is the data of the events under test: the n-th of its key. It becomes
// parts messages.
type thing struct {
	Key   string `json:"key"`
	N     int    `json:"n"`
	Parts int    `json:"parts,omitempty"`
	Part  int    `json:"part,omitempty"`
	Pad   string `json:"pad,omitempty"`
}

// record of an event for the channel named like the tenant.
func (w *world) record(channel string, d thing) *kgo.Record {
	value, _ := json.Marshal(d)
	rec := &kgo.Record{Topic: w.topic, Key: []byte(d.Key), Value: value}
	env := event.Envelope{
		ID: event.NewID(), Source: "/things", Type: "things.Moved", Subject: d.Key,
		Time: time.Now(), Tenant: channel, Sequence: int64(d.N),
	}
	env.Headers(func(name, value string) {
		rec.Headers = append(rec.Headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
	})
	return rec
}

func (w *world) publish(t testing.TB, records ...*kgo.Record) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := w.cl.ProduceSync(ctx, records...).FirstErr(); err != nil {
		t.Error(err)
	}
}

func (w *world) say(t testing.TB, channel, key string, n int) {
	t.Helper()
	w.publish(t, w.record(channel, thing{Key: key, N: n}))
}

// route sends a thing to its tenant's channel, in as many messages as it says.
func route(_ context.Context, rec *kgo.Record, env *event.Envelope) ([]push.Delivery, error) {
	var d thing
	if err := json.Unmarshal(rec.Value, &d); err != nil {
		return nil, err
	}
	out := make([]push.Delivery, max(d.Parts, 1))
	for i := range out {
		d.Part = i
		line, err := push.JSON(env, d)
		if err != nil {
			return nil, err
		}
		out[i] = push.Delivery{Channel: env.Tenant, Message: push.Message{Event: "moved", Data: line}}
	}
	return out, nil
}

// site is a hub behind a server. It goes with the test, or earlier by stop.
type site struct {
	*push.Hub
	url  string
	stop func()
}

var testKey = [32]byte{1, 2, 3}

func (w *world) site(t testing.TB, with func(*push.Config)) *site {
	t.Helper()
	cfg := push.Config{
		Topics: []string{w.topic}, Route: route, Key: testKey,
		Logger: slog.New(slog.DiscardHandler),
	}
	if with != nil {
		with(&cfg)
	}
	hub, err := push.New(w.Config.Client, cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- hub.Run(ctx) }()
	srv := httptest.NewServer(handler(hub))
	s := &site{Hub: hub, url: srv.URL}
	stopped := false
	s.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
		srv.Close() // waits for every connection
	}
	t.Cleanup(s.stop)
	await(t, hub.Ready(), "hub ready")
	return s
}

func handler(hub *push.Hub) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hub.Serve(w, r, r.URL.Query().Get("channel"))
	})
}

func newServer(t testing.TB, hub *push.Hub) (url string) {
	t.Helper()
	srv := httptest.NewServer(handler(hub))
	t.Cleanup(srv.Close)
	return srv.URL
}

func await[T any](t testing.TB, ch <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-ch:
	case <-time.After(patience):
		t.Fatalf("no %s within %s", what, patience)
	}
	return v
}

// message as a client sees it.
type message struct {
	event, data, id string
	comment         string
	retry           int
}

func (m message) thing(t testing.TB) thing {
	t.Helper()
	var line struct {
		ID   uuid.UUID
		Data thing
	}
	if err := json.Unmarshal([]byte(m.data), &line); err != nil {
		t.Fatalf("data %q of %q: %v", m.data, m.event, err)
	}
	return line.Data
}

// stream is a client's connection.
type stream struct {
	t      testing.TB
	res    *http.Response
	rd     *bufio.Reader
	cancel context.CancelFunc
}

var transport = &http.Transport{DisableKeepAlives: true}

// get asks for a channel; the answer may be a refusal.
func (s *site) get(t testing.TB, channel, cursor string) *stream {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"?channel="+url.QueryEscape(channel), nil)
	if err != nil {
		t.Fatal(err)
	}
	if cursor != "" {
		req.Header.Set("Last-Event-ID", cursor)
	}
	res, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	return streamOf(t, res, cancel)
}

// streamOf reads the messages of an answer.
func streamOf(t testing.TB, res *http.Response, cancel context.CancelFunc) *stream {
	c := &stream{t: t, res: res, rd: bufio.NewReader(res.Body), cancel: cancel}
	t.Cleanup(c.close)
	return c
}

// read reads the answer on a bare connection.
func (s *site) read(t testing.TB, conn net.Conn) *stream {
	t.Helper()
	rd := bufio.NewReader(conn)
	res, err := http.ReadResponse(rd, nil)
	if err != nil {
		t.Fatal(err)
	}
	return streamOf(t, res, func() { _ = conn.Close() })
}

func (c *stream) close() {
	c.cancel()
	_ = c.res.Body.Close()
}

// open a stream that is taken.
func (s *site) open(t testing.TB, channel, cursor string) *stream {
	t.Helper()
	c := s.get(t, channel, cursor)
	if c.res.StatusCode != http.StatusOK {
		t.Fatalf("status %d", c.res.StatusCode)
	}
	return c
}

// fresh opens a stream without a cursor and returns the one it gets.
func (s *site) fresh(t testing.TB, channel string) (*stream, string) {
	t.Helper()
	c := s.open(t, channel, "")
	m := c.next()
	if m.event != push.EventReady || m.id == "" {
		t.Fatalf("first message %+v, want ready with a cursor", m)
	}
	return c, m.id
}

// block reads up to an empty line, io.EOF at the end.
func (c *stream) block() (message, error) {
	watchdog := time.AfterFunc(patience, c.cancel)
	defer watchdog.Stop()
	var m message
	for {
		l, err := c.rd.ReadString('\n')
		if err != nil {
			return m, err
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(l, "\n"), ": ")
		switch name {
		case "":
			if l == "\n" {
				return m, nil
			}
			m.comment = value
		case "event":
			m.event = value
		case "data":
			m.data += value
		case "id":
			m.id = value
		case "retry":
			m.retry, _ = strconv.Atoi(value)
		default:
			c.t.Fatalf("unknown line %q", l)
		}
	}
}

// next is the next block that carries a message.
func (c *stream) next() message {
	c.t.Helper()
	for {
		m, err := c.block()
		if err != nil {
			c.t.Fatalf("read stream: %v", err)
		}
		if m.data != "" {
			return m
		}
	}
}

// want reads messages of one key, numbered from..to, and returns the last id.
func (c *stream) want(key string, from, to int) (cursor string) {
	c.t.Helper()
	for n := from; n <= to; n++ {
		m := c.next()
		if m.event != "moved" {
			c.t.Fatalf("got %q (%s), want %s %d", m.event, m.data, key, n)
		}
		if d := m.thing(c.t); d.Key != key || d.N != n {
			c.t.Fatalf("got %s %d, want %s %d", d.Key, d.N, key, n)
		}
		cursor = m.id
	}
	return cursor
}

// rest reads to the end and returns the last block.
func (c *stream) rest() (last message) {
	c.t.Helper()
	for {
		m, err := c.block()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				c.t.Fatalf("stream ended with %v, want a clean end", err)
			}
			return last
		}
		last = m
	}
}
