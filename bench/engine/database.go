package engine

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/waybillhq/waybill/pg"
)

// createDatabase makes a database beside the one that is named: a measurement
// fills the outbox, and whoever's outbox that were, its relay would publish it.
func (e *Engines) createDatabase(ctx context.Context, dsn string) (err error) {
	pool, err := pg.Open(ctx, dsn, pg.Config{ApplicationName: "waybill bench", MaxConns: 2})
	if err != nil {
		return err
	}
	_, err = pool.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{e.name}.Sanitize()+" TEMPLATE template0")
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == "42501" {
		role := pgx.Identifier{pool.Config().ConnConfig.User}.Sanitize()
		err = fmt.Errorf("a measurement makes a database of its own beside yours and drops it afterwards, which needs a role that may: ALTER ROLE %s CREATEDB REPLICATION: %w",
			role, err)
	}
	if err != nil {
		pool.Close()
		return err
	}
	e.others, e.DSN = pool, withDatabase(dsn, e.name)
	return nil
}

// renameDatabase gives our own server's database a name that nobody else has.
// What a relay keeps in a broker bears the database's name, and in somebody's
// broker that of their relay may be there.
func (e *Engines) renameDatabase(ctx context.Context) error {
	ours, err := pgx.ParseConfig(e.admin)
	if err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, withDatabase(e.admin, "template1"))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	_, err = conn.Exec(ctx, fmt.Sprintf("ALTER DATABASE %s RENAME TO %s", pgx.Identifier{ours.Database}.Sanitize(), pgx.Identifier{e.name}.Sanitize()))
	e.DSN, e.admin = withDatabase(e.DSN, e.name), withDatabase(e.admin, e.name)
	return err
}

// withDatabase is dsn with another database's name.
func withDatabase(dsn, name string) string {
	if u, err := url.Parse(dsn); err == nil && strings.HasPrefix(u.Scheme, "postgres") {
		u.Path = "/" + name
		q := u.Query()
		q.Del("dbname")
		q.Del("database")
		u.RawQuery = q.Encode()
		return u.String()
	}
	return dsn + " dbname=" + name // the last one counts
}

// dropDatabase drops the slots in it first: a database with slots stays, and
// they keep WAL for ever.
func (e *Engines) dropDatabase(ctx context.Context) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := e.dropSlots(ctx)
		if err == nil {
			_, err = e.others.Exec(ctx, "DROP DATABASE IF EXISTS "+pgx.Identifier{e.name}.Sanitize()+" WITH (FORCE)")
		}
		if err == nil {
			return nil
		}
		select {
		case <-tick.C: // a sender whose reader is gone holds its slot a moment longer
		case <-ctx.Done():
			return fmt.Errorf("database %s and its replication slots are left in your Postgres, drop them yourself: %w", e.name, err)
		}
	}
}

func (e *Engines) dropSlots(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, e.DSN) // a slot can be dropped from its own database alone
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = current_database()")
	return err
}

// Checkpoint has the server write out what it changed, so that it does not
// while something is measured. Where we may not ask for one, it happens when it
// happens.
func (e *Engines) Checkpoint(ctx context.Context) error {
	dsn := e.admin
	if dsn == "" {
		dsn = e.DSN
	}
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	_, err = conn.Exec(ctx, "CHECKPOINT")
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == "42501" {
		return nil
	}
	return err
}
