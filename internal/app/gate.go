package app

import (
	"context"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/waybillhq/waybill/incident"
	"github.com/waybillhq/waybill/outbox"
	"github.com/waybillhq/waybill/outbox/relay"
)

// newGate is what holds writers of events back.
func (a *App) newGate() *outbox.Gate {
	db := a.engines.db
	grace := time.Duration(0)
	if !slices.Contains(a.roles, RoleRelay) {
		grace = -1 // no relay starts with us
	}
	g := outbox.NewGate(db, outbox.GateConfig{
		Slot:       relay.SlotName(db.Config().ConnConfig.Database),
		MaxBacklog: a.cfg.Outbox.MaxBacklog, MaxWAL: int64(a.cfg.Outbox.MaxWAL),
		Message: a.messages(), Poll: a.polls(), SlotGrace: grace, Changed: a.recordGate, Logger: a.log,
	})
	a.metrics.MustRegister(&gateMetrics{g})
	return g
}

func (a *App) polls() bool { return relay.Mode(a.cfg.Outbox.Relay) == relay.Poll }

// messages tells whether events are written to the WAL alone.
func (a *App) messages() bool { return relay.Mode(a.cfg.Outbox.Relay) == relay.Message }

// startGate runs the gate wherever a role may write. Handlers may, also where
// none does today: a gate that nobody runs is never closed, or never open.
func (a *App) startGate(ctx context.Context, g *outbox.Gate, roles []string) {
	if slices.ContainsFunc(roles, func(role string) bool { return role != RoleRelay && role != RoleMonitor }) {
		a.stack.run(ctx, "outbox gate", g.Run)
	}
}

// gateOpens waits for the relay's first slot where events are written to the
// WAL alone: before, each would be refused. It does not wait for ever: the relay
// may be another's to start, and reading works without.
func (a *App) gateOpens(ctx context.Context, g *outbox.Gate) {
	if !a.messages() || !slices.Contains(a.roles, RoleRelay) {
		return
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.After(5 * time.Second)
	for g.State().Closed != nil {
		select {
		case <-ctx.Done():
			return
		case <-late:
			return
		case <-tick.C:
		}
	}
}

// recordGate leaves word for the operator.
func (a *App) recordGate(ctx context.Context, s outbox.GateState) {
	if s.Closed == nil {
		return
	}
	err := incident.Record(ctx, a.engines.db, incident.Incident{
		Part: "outbox", Kind: "writers refused", Subject: string(s.Closed.Reason), Text: s.Closed.Error(),
		Detail: map[string]any{
			"backlog": s.Backlog, "max_backlog": s.MaxBacklog, "wal": s.WAL, "max_wal": s.MaxWAL,
		},
	})
	if err != nil {
		a.log.WarnContext(ctx, "not recorded", "error", err)
	}
}

// gateMetrics shows what the gate knows. What it does not know is left out: a
// zero would say that all is well.
type gateMetrics struct{ gate *outbox.Gate }

var (
	closedDesc       = prometheus.NewDesc("waybill_outbox_closed", "1 while writers of events are refused.", nil, nil)
	backlogDesc      = prometheus.NewDesc("waybill_outbox_backlog_events", "Events committed and not published, counted up to one above the limit.", nil, nil)
	backlogLimitDesc = prometheus.NewDesc("waybill_outbox_backlog_limit_events", "Events past which writers are refused.", nil, nil)
	oldestDesc       = prometheus.NewDesc("waybill_outbox_oldest_event_age_seconds", "Age of the oldest event that is not published, 0 if all are.", nil, nil)
	walDesc          = prometheus.NewDesc("waybill_outbox_wal_bytes", "WAL that the server keeps for the relay's slot.", nil, nil)
	walLimitDesc     = prometheus.NewDesc("waybill_outbox_wal_limit_bytes", "WAL past which writers are refused.", nil, nil)
)

func (m *gateMetrics) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(m, ch) }

func (m *gateMetrics) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v)
	}
	s := m.gate.State()
	isClosed := 0.0
	if s.Closed != nil {
		isClosed = 1
	}
	gauge(closedDesc, isClosed)
	gauge(backlogLimitDesc, float64(s.MaxBacklog))
	gauge(walLimitDesc, float64(s.MaxWAL))
	if s.Err != nil {
		return
	}
	if s.WAL != nil {
		gauge(walDesc, float64(*s.WAL))
	}
	if s.Backlog != nil {
		gauge(backlogDesc, float64(*s.Backlog))
		age := time.Duration(0)
		if s.Oldest != nil {
			age = max(0, time.Since(*s.Oldest))
		}
		gauge(oldestDesc, age.Seconds())
	}
}
