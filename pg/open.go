package pg

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	pgxuuid "github.com/vgarvardt/pgx-google-uuid/v5"
)

// Config tunes a pool. The zero value works. What the connection string says
// itself wins over every field here.
type Config struct {
	// ApplicationName is what pg_stat_activity shows. Default "waybill".
	ApplicationName string
	// MaxConns bounds the pool. Default 16.
	MaxConns int32
	// MinConns are kept open when idle. Default 0.
	MinConns int32
	// ConnectTimeout bounds dialling and logging in. Default 5 s.
	ConnectTimeout time.Duration
	// StatementTimeout ends a statement that runs longer. Default none.
	StatementTimeout time.Duration
	// IdleInTransaction ends the session of a transaction that was left
	// open without a statement: it would hold back vacuum and a row's lock.
	// Default 1 min, negative for never.
	IdleInTransaction time.Duration
	// Tracer sees every statement. Default none.
	Tracer pgx.QueryTracer
}

func (c Config) withDefaults() Config {
	if c.ApplicationName == "" {
		c.ApplicationName = "waybill"
	}
	if c.MaxConns <= 0 {
		c.MaxConns = 16
	}
	if c.ConnectTimeout <= 0 {
		c.ConnectTimeout = 5 * time.Second
	}
	if c.IdleInTransaction == 0 {
		c.IdleInTransaction = time.Minute
	}
	return c
}

// Open connects to the database at dsn, a URL or key=value string, and returns
// once a connection stands. Errors name user, host and database, never the
// password.
func Open(ctx context.Context, dsn string, cfg Config) (*pgxpool.Pool, error) {
	pc, err := poolConfig(dsn, cfg.withDefaults())
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, fmt.Errorf("open database %s: %w", describe(pc.ConnConfig), openError{err})
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("open database %s: %w", describe(pc.ConnConfig), openError{err})
	}
	return pool, nil
}

func poolConfig(dsn string, cfg Config) (*pgxpool.Config, error) {
	said, err := settings(dsn)
	if err != nil {
		return nil, err
	}
	pc, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, unreadable(err)
	}
	if _, ok := said["pool_max_conns"]; !ok {
		pc.MaxConns = cfg.MaxConns
	}
	if _, ok := said["pool_min_conns"]; !ok {
		pc.MinConns = min(cfg.MinConns, pc.MaxConns)
	}
	applySession(pc.ConnConfig, cfg)
	pc.AfterConnect = func(_ context.Context, c *pgx.Conn) error {
		pgxuuid.Register(c.TypeMap()) // in binary; uuid.UUID would otherwise go through its text
		return nil
	}
	return pc, nil
}

// applySession sets what holds for every session of the pool.
func applySession(cc *pgx.ConnConfig, cfg Config) {
	if cc.ConnectTimeout <= 0 {
		cc.ConnectTimeout = cfg.ConnectTimeout
	}
	// A peer that vanished without a word (host gone, NAT entry dropped)
	// is noticed in about 25 s, not after the system's two hours.
	dialer := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3,
	}}
	cc.DialFunc = dialer.DialContext
	if cfg.Tracer != nil {
		cc.Tracer = cfg.Tracer
	}
	setDefault(cc.RuntimeParams, "application_name", cfg.ApplicationName)
	setTimeout(cc.RuntimeParams, "statement_timeout", cfg.StatementTimeout)
	setTimeout(cc.RuntimeParams, "idle_in_transaction_session_timeout", cfg.IdleInTransaction)
}

func setDefault(params map[string]string, name, value string) {
	if _, ok := params[name]; !ok {
		params[name] = value
	}
}

func setTimeout(params map[string]string, name string, d time.Duration) {
	if d > 0 {
		setDefault(params, name, strconv.FormatInt(max(1, d.Milliseconds()), 10))
	}
}

// describe names a database without its password.
func describe(cc *pgx.ConnConfig) string {
	return fmt.Sprintf("%q at %s as %q", cc.Database,
		net.JoinHostPort(cc.Host, strconv.Itoa(int(cc.Port))), cc.User)
}
