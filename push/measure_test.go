package push_test

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// BenchmarkIdleConnections tells what an idle connection costs over plain HTTP/1.
// The clients' sockets are in the same process; they have no goroutines.
func BenchmarkIdleConnections(b *testing.B) {
	b.Run("events", func(b *testing.B) { measureIdle(b, "") })
	b.Run("websocket", func(b *testing.B) {
		measureIdle(b, "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n")
	})
}

func measureIdle(b *testing.B, header string) {
	const n = 5000
	w := newWorld(b, 3)
	s := w.site(b, nil)
	for b.Loop() {
		mem, routines := usage()
		conns := make([]net.Conn, n)
		for i := range conns {
			conns[i] = subscribed(b, s, fmt.Sprintf("c%d", i), header)
		}
		memThen, routinesThen := usage()
		b.ReportMetric(float64(memThen-mem)/n, "B/conn")
		b.ReportMetric(float64(routinesThen-routines)/n, "goroutines/conn")
		for _, c := range conns {
			_ = c.Close()
		}
	}
}

func usage() (mem uint64, routines int) {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse, runtime.NumGoroutine()
}

// subscribed is a bare connection that has received the opening message.
func subscribed(tb testing.TB, s *site, channel, header string) net.Conn {
	var d net.Dialer
	c, err := d.DialContext(tb.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := fmt.Fprintf(c, "GET /?channel=%s HTTP/1.1\r\nHost: x\r\n%s\r\n", channel, header); err != nil {
		tb.Fatal(err)
	}
	var got [2048]byte
	for n := 0; !bytes.Contains(got[:n], []byte("\nid: ")) && !bytes.Contains(got[:n], []byte(`"id":`)); {
		m, err := c.Read(got[n:])
		if err != nil {
			tb.Fatal(err)
		}
		n += m
	}
	return c
}

// BenchmarkPublishToReceive paces events at 1000 a second: each to one of 100
// connections, and each to all of 100.
func BenchmarkPublishToReceive(b *testing.B) {
	b.Run("one-of-100", func(b *testing.B) { measureDelay(b, 100, 1) })
	b.Run("all-of-100", func(b *testing.B) { measureDelay(b, 1, 100) })
}

const (
	paceEvery = time.Millisecond
	paceFor   = 5000
)

func measureDelay(b *testing.B, channels, perChannel int) {
	w := newWorld(b, 3)
	s := w.site(b, nil)
	sent := make([]time.Time, paceFor)
	delays := make([][]time.Duration, channels*perChannel)
	acks := make([]time.Duration, paceFor) // what the broker alone takes, to compare
	for b.Loop() {
		var reading sync.WaitGroup
		var lock sync.RWMutex
		for i := range delays {
			c, _ := s.fresh(b, fmt.Sprintf("c%d", i%channels))
			reading.Go(func() {
				defer c.close()
				delays[i] = receive(b, c.rd, paceFor/channels, func(n int) time.Time {
					lock.RLock()
					defer lock.RUnlock()
					return sent[n]
				})
			})
		}
		tick := time.NewTicker(paceEvery)
		for n := range paceFor {
			<-tick.C
			rec := w.record(fmt.Sprintf("c%d", n%channels), thing{Key: strconv.Itoa(n % 97), N: n, Pad: strings.Repeat("x", 200)})
			now := time.Now()
			lock.Lock()
			sent[n] = now
			lock.Unlock()
			w.cl.Produce(b.Context(), rec, func(_ *kgo.Record, err error) {
				acks[n] = time.Since(now)
				if err != nil {
					b.Error(err)
				}
			})
		}
		tick.Stop()
		reading.Wait()
		if err := w.cl.Flush(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	report(b, "", slices.Concat(delays...))
	report(b, "ack-", acks)
}

func report(b *testing.B, name string, all []time.Duration) {
	slices.Sort(all)
	b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, name+"p50-ms")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, name+"p99-ms")
}

// receive reads count messages and tells how long each was on its way.
func receive(b *testing.B, rd *bufio.Reader, count int, sent func(n int) time.Time) []time.Duration {
	delays := make([]time.Duration, 0, count)
	for len(delays) < count {
		l, err := rd.ReadString('\n')
		if err != nil {
			b.Error(err)
			return delays
		}
		_, after, ok := strings.Cut(l, `"n":`)
		if !ok {
			continue
		}
		digits, _, _ := strings.Cut(after, ",")
		n, err := strconv.Atoi(digits)
		if err != nil {
			b.Error(err)
			return delays
		}
		delays = append(delays, time.Since(sent(n)))
	}
	return delays
}
