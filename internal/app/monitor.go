package app

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/waybillhq/waybill/alert"
	"github.com/waybillhq/waybill/internal/config"
	"github.com/waybillhq/waybill/lag"
)

// newMonitor is made before the roles start, since the API shows what it sees.
func (a *App) newMonitor(roles []string) error {
	if !slices.Contains(roles, RoleMonitor) {
		return nil
	}
	c := a.cfg.Lag
	m, err := lag.New(lag.Deps{Client: a.engines.broker.Client, DB: a.engines.db}, lag.Config{
		Every: c.Every, Late: c.Late, StallAfter: c.StallAfter, Reads: c.Reads,
		Metrics: a.metrics, Logger: a.log,
	})
	if err != nil {
		return err
	}
	a.monitor = m
	a.stack.onStop("lag client", func(context.Context) error { m.Close(); return nil })
	return nil
}

// startMonitor watches lag, tells of what is wrong, and where no API does it
// serves what it knows itself.
func (a *App) startMonitor(ctx context.Context) error {
	if a.httpAddr == "" {
		if err := a.serveMonitor(ctx); err != nil {
			return err
		}
	}
	a.stack.run(ctx, RoleMonitor, a.monitor.Run)
	if a.cfg.Alerts.Off {
		return nil
	}
	rules, err := a.cfg.Alerts.ParsedRules()
	if err != nil {
		return err
	}
	e := alert.New(alert.Deps{DB: a.engines.db, Read: a.readings}, alert.Config{
		Rules: rules, Sinks: sinks(a.cfg.Alerts), Every: a.cfg.Lag.Every, Logger: a.log,
	})
	a.stack.run(ctx, "alerts", func(ctx context.Context) error {
		select {
		case <-a.monitor.Ready():
			return e.Run(ctx)
		case <-ctx.Done():
			return nil
		}
	})
	return nil
}

func sinks(c config.Alerts) (out []alert.Sink) {
	if e := c.Webhook; e != nil {
		out = append(out, alert.Webhook(e.URL, e.Headers))
	}
	if e := c.Alertmanager; e != nil {
		out = append(out, alert.Alertmanager(e.URL, e.Headers))
	}
	return out
}

// serveMonitor listens for those who scale and scrape.
func (a *App) serveMonitor(ctx context.Context) error {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", a.cfg.Listen)
	if err != nil {
		return flagHint(err, "--listen")
	}
	a.httpAddr = ln.Addr().String()
	mux := http.NewServeMux()
	mux.Handle("GET /v1/", a.monitorHandler())
	mux.Handle("GET /metrics", promhttp.HandlerFor(a.metrics, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	serve(a.stack, "monitor http", &http.Server{
		Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
	}, ln)
	return nil
}

// monitorHandler is nil where the role is not played.
func (a *App) monitorHandler() http.Handler {
	if a.monitor == nil {
		return nil
	}
	return a.monitor.Handler(func(group string) lag.Goal { return ScaleGoal(a.cfg.Scale, group) })
}

// stale is how many rounds a snapshot is good for: one that hangs must not be
// taken for how things are.
const stale = 10

func (a *App) readings(context.Context) ([]alert.Reading, error) {
	s := a.monitor.Latest()
	if age := time.Since(s.At); age > max(time.Minute, stale*a.cfg.Lag.Every) {
		return nil, fmt.Errorf("the last look at the groups was %s ago", age.Round(time.Second))
	}
	out := make([]alert.Reading, len(s.Groups))
	for i := range s.Groups {
		out[i] = Reading(&s.Groups[i])
	}
	return out, nil
}

// Reading is what alerts are told of a group.
func Reading(g *lag.Group) alert.Reading {
	r := alert.Reading{
		Group: g.Name, Seconds: g.Seconds, Partial: g.Partial, Events: g.Lag, Draining: g.Draining(),
		Members: g.Members, DeadLetters: g.DeadLetters, ParkedKeys: g.ParkedKeys,
	}
	worst := lag.OK
	for _, p := range g.Partitions {
		r.Known = r.Known || p.Lag != nil
		r.Stalled = r.Stalled || p.State == lag.Stalled
		r.Rewound = r.Rewound || p.State == lag.Rewound
		r.Overtaken = r.Overtaken || p.State == lag.Retention
		if p.State != worst && p.State == g.State {
			worst = p.State
			r.Worst = fmt.Sprintf("%s/%d is %s: %s", p.Topic, p.Partition, p.State, p.Why)
			if p.At != nil {
				r.Worst = fmt.Sprintf("%s/%d is %s at offset %d: %s", p.Topic, p.Partition, p.State, *p.At, p.Why)
			}
		}
	}
	return r
}
