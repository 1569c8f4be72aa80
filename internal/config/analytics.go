package config

import (
	"errors"
	"fmt"
)

// EnvClickHouse names the variable with the URL of ClickHouse, and in it its
// password.
const EnvClickHouse = "WAYBILL_CLICKHOUSE_URL"

// Words of Analytics.Sink.
const (
	SinkPostgres   = "postgres"
	SinkClickHouse = "clickhouse"
)

// Analytics is where what can be counted of events is kept.
type Analytics struct {
	Sink       string     `yaml:"sink"`      // postgres, which is the default, or clickhouse
	KeepDays   int        `yaml:"keep_days"` // of the log of events in Postgres; 30
	ClickHouse ClickHouse `yaml:"clickhouse"`
}

// ClickHouse is one database of it.
type ClickHouse struct {
	URL      string `yaml:"url"`
	KeepDays int    `yaml:"keep_days"` // of the log of events; 90
}

// check does not quote the URL: it may have a password.
func (a *Analytics) check() error {
	var errs []error
	switch a.Sink {
	case "", SinkPostgres:
	case SinkClickHouse:
		if a.ClickHouse.URL == "" {
			errs = append(errs, fmt.Errorf("analytics.sink: clickhouse: say which one in %s or analytics.clickhouse.url, as clickhouse://user:password@host:9000/database", EnvClickHouse))
		}
	default:
		errs = append(errs, fmt.Errorf("analytics.sink: %q: want %s or %s", a.Sink, SinkPostgres, SinkClickHouse))
	}
	if a.KeepDays < 0 || a.ClickHouse.KeepDays < 0 {
		errs = append(errs, errors.New("analytics: keep_days: want a number of days, or leave it out"))
	}
	return errors.Join(errs...)
}
