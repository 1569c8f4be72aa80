package consumer

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/event"
)

func TestTypePatterns(t *testing.T) {
	for pattern, types := range map[string]string{
		"a.b.>":   "+a.b.c +a.b.c.d -a.b -a.c.c -a.bb.c",
		"a.*.c":   "+a.b.c -a.c -a.b.b.c -a..c",
		"*":       "+a -a.b",
		">":       "+a +a.b.c",
		"a.b":     "+a.b -a -a.b.c -a.bc",
		"*.b.>":   "+x.b.c -b.c -x.b",
		"*.*.Any": "+x.y.Any -x.Any -x.y.Any.z",
	} {
		if err := (Filter{Types: []string{pattern}}).check(); err != nil {
			t.Error(err)
		}
		for _, want := range strings.Fields(types) {
			if got := matches(pattern, want[1:]); got != (want[0] == '+') {
				t.Errorf("%s matches %s: %v", pattern, want[1:], got)
			}
		}
	}
	if matches(">", "") || matches("*", "") {
		t.Error("a record without a type matches")
	}
	for _, bad := range []string{"", "a..b", "a.>.b", "a.b*", "a.", ".>"} {
		if (Filter{Types: []string{bad}}).check() == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestAFilterAdmitsByTypeTenantAndHeader(t *testing.T) {
	rec := &kgo.Record{Headers: []kgo.RecordHeader{
		{Key: event.HeaderType, Value: []byte("a.B")}, {Key: event.HeaderTenant, Value: []byte("t")}, {Key: "x", Value: []byte("1")},
	}}
	for _, c := range []struct {
		f    Filter
		want bool
	}{
		{Filter{}, true},
		{Filter{Types: []string{"z.>", "a.*"}, Tenants: []string{"s", "t"}, Headers: map[string]string{"x": "1"}}, true},
		{Filter{Types: []string{"z.>"}}, false},
		{Filter{Tenants: []string{"s"}}, false},
		{Filter{Headers: map[string]string{"x": "2"}}, false},
		{Filter{Headers: map[string]string{"x": "1", "y": ""}}, false},
	} {
		if got := c.f.admits(rec); got != c.want {
			t.Errorf("%+v admits it: %v", c.f, got)
		}
	}
}

// Records of types that no handler is for, and such as have none.
func TestAnyTypeReachesItsHandlerAsItIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	strange := w.recordOf(moved{"s", 1})
	for i, h := range strange.Headers {
		if h.Key == event.HeaderType {
			strange.Headers[i].Value = []byte("test.accounts.Closed")
		}
	}
	outside := w.recordOf(moved{"o", 1})
	for i, h := range outside.Headers {
		if h.Key == event.HeaderTenant {
			outside.Headers[i].Value = []byte("unwanted")
		}
	}
	raw := func(_ context.Context, tx pgx.Tx, r Raw) error {
		_, err := tx.Exec(context.Background(), `INSERT INTO effect (key, n, tenant, correlation) VALUES ($1, $2, $3, $4)`,
			string(r.Key), len(r.Value), r.Tenant, r.Type)
		return err
	}
	w.start(nil, func(s *setup) {
		s.cfg.Filter = Filter{Tenants: []string{"tenant-of-a", "tenant-of-s"}}
		s.handlers = func(g *Group, c *event.Contract) {
			on(g, c, keep)
			OnAny(g, c.Topic, Filter{Types: []string{"test.accounts.*"}}, raw)
		}
	})
	w.publish(strange, outside, &kgo.Record{Topic: w.contract.Topic, Key: []byte("n"), Value: []byte("no envelope")})
	w.move("a", "a")
	w.until("all are passed", func() bool { return w.next() == 5 })
	if n := w.number(`SELECT count(*) FROM effect`); n != 3 {
		t.Errorf("%d effects, want those of a, and of the type nobody else handles", n)
	}
	if n := w.number(`SELECT count(*) FROM effect WHERE key = 's' AND n = $1 AND correlation = 'test.accounts.Closed'`, len(strange.Value)); n != 1 {
		t.Error("the strange one did not come as it is")
	}
	w.inOrderOf("a")
}

// inOrderOf holds one key's effects against the oracle.
func (w *world) inOrderOf(key string) {
	w.t.Helper()
	if n := w.number(`SELECT count(*) FROM effect WHERE key = $1`, key); n != w.sent[key] {
		w.t.Errorf("%s has %d effects of %d events", key, n, w.sent[key])
	}
}

func TestABadPatternIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	m := w.start(keep, func(s *setup) { s.cfg.Filter.Types = []string{"a.>.b"} })
	<-m.done
	if m.err == nil {
		t.Error("it was taken")
	}
	m.err = nil
}
