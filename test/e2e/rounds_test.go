package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/waybillhq/waybill/push"
	"github.com/waybillhq/waybill/test/browser"
	"github.com/waybillhq/waybill/test/proc"
)

// listener is a client that keeps losing its connection and comes back with its
// cursor.
type listener struct {
	open   func(ctx context.Context, cursor string) (next func() (message, error), err error)
	cursor string

	mu     sync.Mutex
	got    map[string][]string // facts by order, as they came
	resets int
	opened int
}

// run opens connections and breaks each after some messages, until ctx ends.
func (l *listener) run(ctx context.Context) {
	for ctx.Err() == nil {
		l.once(ctx, 1+rand.IntN(25))
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Millisecond): // the program may be away
		}
	}
}

func (l *listener) once(ctx context.Context, messages int) {
	ctx, cut := context.WithCancel(ctx)
	defer cut()
	next, err := l.open(ctx, l.cursor)
	if err != nil {
		return
	}
	l.with(func() { l.opened++ })
	for range messages {
		m, err := next()
		if err != nil {
			return
		}
		l.with(func() { l.take(m) })
	}
}

func (l *listener) take(m message) {
	l.cursor = m.ID
	switch m.Event {
	case push.EventReady:
	case push.EventReset:
		l.resets++
	default:
		l.got[m.Data.Subject] = append(l.got[m.Data.Subject], m.fact())
	}
}

func (l *listener) with(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
}

func listenEvents(at proc.Waybill) *listener {
	open := func(ctx context.Context, cursor string) (func() (message, error), error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.HTTP+"/v1/events", nil)
		if err != nil {
			return nil, err
		}
		req.Header.Set("Authorization", "Bearer "+at.DemoKey)
		req.Header.Set("Last-Event-ID", cursor)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return nil, err
		}
		context.AfterFunc(ctx, func() { _ = res.Body.Close() })
		if res.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("stream: %s", res.Status)
		}
		rd := bufio.NewReader(res.Body)
		return func() (message, error) { return block(rd) }, nil
	}
	return &listener{open: open, got: map[string][]string{}}
}

// block reads up to the end of a message that has data.
func block(rd *bufio.Reader) (m message, err error) {
	for {
		line, err := rd.ReadBytes('\n')
		if err != nil {
			return m, err
		}
		name, value, _ := bytes.Cut(bytes.TrimSpace(line), []byte(": "))
		switch string(name) {
		case "id":
			m.ID = string(value)
		case "event":
			m.Event = string(value)
		case "data":
			m.Raw = string(value)
		case "":
			if m.Raw != "" {
				return m, json.Unmarshal([]byte(m.Raw), &m.Data)
			}
			m = message{}
		}
	}
}

func listenSocket(at proc.Waybill) *listener {
	open := func(ctx context.Context, cursor string) (func() (message, error), error) {
		ws, _, err := websocket.Dial(ctx, at.HTTP+"/v1/events?last_event_id="+cursor,
			&websocket.DialOptions{Subprotocols: []string{push.Subprotocol, "bearer." + at.DemoKey}})
		if err != nil {
			return nil, err
		}
		context.AfterFunc(ctx, func() { _ = ws.CloseNow() })
		return func() (m message, err error) {
			for {
				_, b, err := ws.Read(ctx)
				if err != nil {
					return m, err
				}
				var told struct {
					ID, Event string
					Data      json.RawMessage
				}
				if err := json.Unmarshal(b, &told); err != nil {
					return m, err
				}
				if told.Data != nil {
					m.ID, m.Event, m.Raw = told.ID, told.Event, string(told.Data)
					return m, json.Unmarshal(told.Data, &m.Data)
				}
			}
		}, nil
	}
	return &listener{open: open, got: map[string][]string{}}
}

// The program is killed at random points under clients that lose their
// connections at random points: each event reaches each of them once, in the
// order of its key, by either transport; and so it does a page.
func TestEachEventComesOnceThroughKillsOfBothEnds(t *testing.T) {
	w := proc.Up(t)
	page := openDesk(t, w, browser.NoWebGL)
	for _, noise := range []string{"ERR_", "status of 503", "WebSocket connection to"} {
		browser.Allow(page, noise)
	}
	at := *w // a restart writes to the original
	both := map[string]*listener{"server-sent events": listenEvents(at), "WebSocket": listenSocket(at)}
	browser.Eval[bool](page, t, fmt.Sprintf(hearing, at.DemoKey))
	browser.Until[bool](page, t, `ready === 2`)
	ctx, stop := context.WithCancel(t.Context())
	var listening, selling sync.WaitGroup
	for _, l := range both {
		listening.Go(func() { l.run(ctx) })
		eventually(t, "it is open", func() (is bool) { l.with(func() { is = l.opened > 0 && l.cursor != "" }); return is })
	}
	for seller := range 3 {
		selling.Go(func() { sellThrough(t.Context(), at, "seller"+strconv.Itoa(seller), 40) })
	}
	for range 3 {
		time.Sleep(time.Duration(rand.IntN(400)) * time.Millisecond) // a random point
		w.Kill()
		w.Start()
	}
	selling.Wait()

	facts := 0
	eventually(t, "all of it is in the log", func() bool {
		n := 0
		for _, f := range logged(t, w) {
			n += len(f)
		}
		facts = n
		return n == 3*40*2
	})
	want := logged(t, w)
	for name, l := range both {
		eventually(t, name+" has as much", func() (all bool) {
			l.with(func() { all = l.count() >= facts || l.resets > 0 })
			return all
		})
	}
	stop()
	listening.Wait()
	for name, l := range both {
		if l.resets > 0 {
			t.Errorf("%s: reset, though all of it is in the log", name)
		}
		if !maps.EqualFunc(l.got, want, slices.Equal) {
			t.Errorf("%s: it heard", name)
			check(t, l.got, want)
		}
		if l.opened < 10 {
			t.Errorf("%s: only %d connections", name, l.opened)
		}
	}
	for _, transport := range []string{"sse", "websocket"} {
		browser.Until[bool](page, t, fmt.Sprintf(`heard.%s.n >= %d`, transport, facts))
		if got := browser.Eval[map[string][]string](page, t, `heard.`+transport+`.facts`); !maps.EqualFunc(got, want, slices.Equal) {
			t.Errorf("a page by %s:", transport)
			check(t, got, want)
		}
	}
	if resets := browser.Eval[int](page, t, `resets`); resets > 0 {
		t.Errorf("a page was reset %d times", resets)
	}
}

// hearing has a page follow by both transports and note what it is told.
const hearing = `import("/assets/push/sse.js").then(({subscribe}) => {
	Object.assign(window, {heard: {}, ready: 0, resets: 0});
	for (const transport of ["sse", "websocket"]) {
		const mine = heard[transport] = {n: 0, facts: {}};
		subscribe({
			url: "/v1/events", transport, headers: {Authorization: "Bearer %s"},
			onEvent: ({data}) => {
				mine.n++;
				(mine.facts[data.subject] ??= []).push(data.type.split(".").at(-1) + "@" + data.sequence);
			},
			onReset: (kind) => kind === "ready" ? ready++ : resets++,
		});
	}
	return true;
})`

func (l *listener) count() (n int) {
	for _, facts := range l.got {
		n += len(facts)
	}
	return n
}

// sellThrough makes n orders and cancels each, asking again until it is answered.
func sellThrough(ctx context.Context, at proc.Waybill, seller string, n int) {
	insist := func(path, body, key string, done ...int) (answer []byte) {
		for ctx.Err() == nil {
			status, b, err := at.Request(ctx, http.MethodPost, path, body, "Idempotency-Key", key)
			if err == nil && slices.Contains(done, status) {
				return b
			}
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
		}
		return nil
	}
	for i := range n {
		key := fmt.Sprint(seller, "-", i)
		var o order
		_ = json.Unmarshal(insist("/v1/orders", proc.Order, key, http.StatusCreated), &o) // what is no order cannot be cancelled below
		insist("/v1/orders/"+o.ID+"/transitions", `{"to":"CANCELLED"}`, key+"-c", http.StatusOK, http.StatusConflict)
	}
}
