package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/broker/brokertest"
)

// benchSchemas is how many schemas a registry holds that is measured;
// WAYBILL_BENCH_SCHEMAS is another number.
var benchSchemas = func() int {
	if n, err := strconv.Atoi(os.Getenv("WAYBILL_BENCH_SCHEMAS")); err == nil {
		return n
	}
	return 10_000
}()

func benchText(i int) string {
	return fmt.Sprintf(`{"type":"record","name":"E%d","namespace":"bank","fields":[{"name":"id","type":"string"},{"name":"n","type":"long"},{"name":"at","type":["null",{"type":"long","logicalType":"timestamp-micros"}],"default":null},{"name":"note","type":"string","default":""}]}`, i)
}

// fill writes n subjects with a schema each.
func fill(b *testing.B, e *brokertest.Engine, topic string, n int) {
	b.Helper()
	client := e.Client(b, kgo.DefaultProduceTopic(topic))
	var records []*kgo.Record
	for i := 1; i <= n; i++ {
		v := &version{content: &content{id: i, text: benchText(i)}, subject: fmt.Sprintf("s%d", i), number: 1}
		records = append(records, &kgo.Record{Key: schemaKey(v.subject, 1), Value: v.value(false)})
	}
	if err := client.ProduceSync(b.Context(), records...).FirstErr(); err != nil {
		b.Fatal(err)
	}
}

func boot(b *testing.B, e *brokertest.Engine, topic string) (*Server, func()) {
	b.Helper()
	s := New(e.Config, Config{Topic: topic, Capabilities: e.Capabilities, Logger: e.Logger})
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	<-s.Ready()
	return s, func() {
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	}
}

// BenchmarkStart reads a topic of many schemas until ready.
func BenchmarkStart(b *testing.B) {
	e, topic := brokertest.New(b), brokertest.Topic(b, "schemas")
	_, stop := boot(b, e, topic)
	stop()
	fill(b, e, topic, benchSchemas)
	before, held := heap(), uint64(0)
	for b.Loop() {
		s, stop := boot(b, e, topic)
		b.StopTimer()
		held = heap() - before
		runtime.KeepAlive(s)
		stop()
		b.StartTimer()
	}
	b.ReportMetric(float64(held)/float64(benchSchemas), "B/schema")
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkAsk asks a registry of many schemas over HTTP, one after the other,
// and reports percentiles.
func BenchmarkAsk(b *testing.B) {
	e, topic := brokertest.New(b), brokertest.Topic(b, "schemas")
	_, stop := boot(b, e, topic)
	stop()
	fill(b, e, topic, benchSchemas)
	s, stop := boot(b, e, topic)
	defer stop()
	web := httptest.NewServer(s)
	defer web.Close()
	body := func(i int) string {
		t, _ := json.Marshal(map[string]string{"schema": benchText(i)})
		return string(t)
	}
	for _, c := range []struct {
		name string
		make func(n int) (method, path, body string)
	}{
		{"by id", func(n int) (string, string, string) {
			return http.MethodGet, fmt.Sprintf("/schemas/ids/%d", n%benchSchemas+1), ""
		}},
		{"lookup", func(n int) (string, string, string) {
			i := n%benchSchemas + 1
			return http.MethodPost, fmt.Sprintf("/subjects/s%d", i), body(i)
		}},
		{"register known", func(n int) (string, string, string) {
			i := n%benchSchemas + 1
			return http.MethodPost, fmt.Sprintf("/subjects/s%d/versions", i), body(i)
		}},
		{"register new", func(n int) (string, string, string) {
			return http.MethodPost, fmt.Sprintf("/subjects/new%d/versions", n), body(n + 2*benchSchemas)
		}},
		{"subjects", func(int) (string, string, string) { return http.MethodGet, "/subjects", "" }},
		{"subjects of a prefix", func(n int) (string, string, string) {
			return http.MethodGet, fmt.Sprintf("/subjects?subjectPrefix=s%d", n%benchSchemas+1), ""
		}},
		{"page of schemas", func(int) (string, string, string) { return http.MethodGet, "/schemas?limit=100&offset=500", "" }},
		{"usages", func(n int) (string, string, string) {
			return http.MethodGet, fmt.Sprintf("/schemas/ids/%d/versions", n%benchSchemas+1), ""
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			var took []time.Duration
			n := 0
			for b.Loop() {
				n++
				method, path, body := c.make(n * 7919)
				at := time.Now()
				ask(b, web, method, path, body)
				took = append(took, time.Since(at))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		})
	}
}

func ask(b *testing.B, web *httptest.Server, method, path, body string) {
	req, err := http.NewRequestWithContext(b.Context(), method, web.URL+path, strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("Content-Type", mediaType)
	resp, err := web.Client().Do(req)
	if err != nil {
		b.Fatal(err)
	}
	out, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil || resp.StatusCode != http.StatusOK {
		b.Fatalf("%s %s: %d %s %v", method, path, resp.StatusCode, out, err)
	}
}
