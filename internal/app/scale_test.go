package app

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/waybillhq/waybill/internal/config"
	"github.com/waybillhq/waybill/lag"
)

func following(most int) config.Scale {
	return config.Scale{Groups: map[string]config.ScaleGoal{
		RoleAnalytics: {Workers: config.Workers{Follow: true, Min: 1, Max: most, Every: time.Second}},
	}}
}

func TestWorkersFollowTheLagWhereTheConfigurationSaysSo(t *testing.T) {
	b := startBroker(t, config.MetricsOff)
	for _, roles := range [][]string{{RoleAnalytics}, {RoleAnalytics, RoleMonitor}} { // by looks of its own, and by the monitor's
		cfg := rolesOn(t, b)
		cfg.MetricsListen, cfg.Scale = "127.0.0.1:0", following(60)
		a, err := Run(t.Context(), cfg, slog.New(slog.DiscardHandler), roles...)
		if err != nil {
			t.Fatal(err)
		}
		stopLater(t, a)
		_, metrics := get(t, "http://"+a.OpsAddress()+"/metrics")
		if !strings.Contains(metrics, `waybill_consumer_workers_target{group="analytics"} 1`) {
			t.Errorf("%v: it does not begin with the least there shall be", roles)
		}
		want := int32(60 + otherConnections)
		if got := a.engines.db.Config().MaxConns; got != want {
			t.Errorf("%v: a pool of %d, want %d", roles, got, want)
		}
	}
}

func TestWithoutBoundsNothingChanges(t *testing.T) {
	a := &App{roles: []string{RoleAnalytics}}
	if a.connections() != poolConnections {
		t.Errorf("%d connections", a.connections())
	}
	a = &App{roles: []string{RoleRelay}, cfg: config.Config{Scale: following(500)}}
	if a.connections() != poolConnections {
		t.Errorf("%d connections for workers of another process", a.connections())
	}
}

// Also where there are so many processors that a group has more workers than that
// by itself.
func TestThePoolBearsWhateverWorkersAreConfigured(t *testing.T) {
	for most := 1; most <= 500; most++ {
		a := &App{roles: []string{RoleAnalytics}, cfg: config.Config{Scale: following(most)}}
		if got := a.connections(); got < poolConnections || got < int32(most+otherConnections) {
			t.Errorf("%d connections for %d workers", got, most)
		}
	}
}

func TestBoundsThatThePoolOrTheServerCannotBearAreRefused(t *testing.T) {
	b := startBroker(t, config.MetricsOff)
	try := func(change func(*config.Config)) error {
		cfg := rolesOn(t, b)
		cfg.MetricsListen = config.MetricsOff
		change(&cfg)
		a, err := Run(t.Context(), cfg, slog.New(slog.DiscardHandler), RoleAnalytics)
		if err == nil {
			err = a.Stop(context.WithoutCancel(t.Context()))
		}
		return err
	}
	for say, change := range map[string]func(*config.Config){
		"raise max_connections": func(c *config.Config) { c.Scale = following(1000) },
		"20 workers need a pool of 22 connections, and it has 9": func(c *config.Config) {
			c.Scale = following(20)
			sep := "?"
			if strings.Contains(c.DatabaseURL, "?") {
				sep = "&"
			}
			c.DatabaseURL += sep + "pool_max_conns=9"
		},
		"scale.groups.billing.workers": func(c *config.Config) {
			c.Scale.Groups = map[string]config.ScaleGoal{"billing": {Workers: config.Workers{Follow: true, Min: 1, Max: 2}}}
		},
	} {
		if err := try(change); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%v, want it to say %q", err, say)
		}
	}
}

func TestTheAdviceCountsOnWhatWorkersMayBecome(t *testing.T) {
	scale := following(20)
	scale.Drain, scale.Workers.Now = time.Hour, 5
	for group, want := range map[string]lag.Goal{
		RoleAnalytics: {Workers: 20, MaxWorkers: 20},
		"billing":     {Drain: time.Hour, Workers: 5},
	} {
		if got := ScaleGoal(scale, group); got != want {
			t.Errorf("%s: %+v, want %+v", group, got, want)
		}
	}
}
