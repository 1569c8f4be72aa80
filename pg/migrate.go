package pg

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"log/slog"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
)

// Migration is the tables of one package: goose SQL files in the folder
// migrations of Files, numbered on their own. Which of them are
// applied is kept in the table Schema.migrations_Package, so packages share a
// schema without knowing of each other.
//
// Schema is created if it is not there, and unqualified names in the files
// mean it.
type Migration struct {
	Package string
	Schema  string
	Files   fs.FS
}

var plainName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,47}$`)

// Migrate brings the tables of each migration up to date, in the order given,
// over one connection of its own. Processes that start at once take turns.
func Migrate(ctx context.Context, pool *pgxpool.Pool, migrations ...Migration) (err error) {
	for _, m := range migrations {
		if !plainName.MatchString(m.Package) || !plainName.MatchString(m.Schema) {
			return fmt.Errorf("migrate %q in schema %q: names are lower-case letters, digits and _", m.Package, m.Schema)
		}
	}
	db := oneSession(pool)
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := lock(ctx, db); err != nil {
		return err
	}
	for _, m := range migrations {
		if err := m.apply(ctx, db); err != nil {
			return fmt.Errorf("migrate %s.%s: %w", m.Schema, m.Package, err)
		}
	}
	return nil
}

// oneSession dials outside the pool: a session lock and search_path must hold
// for all of the migrations, and must not leak into a connection others use.
// Closing it releases the lock.
func oneSession(pool *pgxpool.Pool) *sql.DB {
	cc := pool.Config().ConnConfig
	// Migrations may build indexes for longer than a request may take.
	cc.RuntimeParams["statement_timeout"] = "0"
	// No commit waits for the disk: any later one that does takes these along,
	// and a migration lost in a crash before that is run again.
	cc.RuntimeParams["synchronous_commit"] = "off"
	cc.DefaultQueryExecMode = pgx.QueryExecModeExec // each statement runs once: preparing it doubles the trips
	cc.Tracer = nil
	db := stdlib.OpenDB(*cc)
	db.SetMaxOpenConns(1)
	db.SetMaxIdleConns(1)
	return db
}

// lock takes the session's advisory lock by trying. Waiting inside Postgres
// would hold a snapshot, which CREATE INDEX CONCURRENTLY of the process that
// has the lock waits for: a deadlock.
func lock(ctx context.Context, db *sql.DB) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		var got bool
		if err := db.QueryRowContext(ctx, "select pg_try_advisory_lock($1)", lockID()).Scan(&got); err != nil {
			return fmt.Errorf("lock migrations: %w", err)
		}
		if got {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("lock migrations held by another process: %w", ctx.Err())
		case <-tick.C:
		}
	}
}

func lockID() int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte("waybill migrations"))
	return int64(h.Sum64())
}

func (m Migration) apply(ctx context.Context, db *sql.DB) error {
	if err := m.enterSchema(ctx, db); err != nil {
		return err
	}
	store, err := database.NewStore(database.DialectPostgres, m.Schema+".migrations_"+m.Package)
	if err != nil {
		return fmt.Errorf("version table: %w", err)
	}
	files, err := fs.Sub(m.Files, "migrations")
	if err != nil {
		return fmt.Errorf("read files: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectCustom, db, files,
		goose.WithStore(store), goose.WithDisableGlobalRegistry(true), goose.WithSlog(slog.New(slog.DiscardHandler)))
	if errors.Is(err, goose.ErrNoMigrations) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read files: %w", err)
	}
	_, err = provider.Up(ctx)
	var partial *goose.PartialError
	if errors.As(err, &partial) && partial.Failed != nil {
		return fmt.Errorf("file %s: %w", partial.Failed.Source.Path, partial.Err)
	}
	return err
}

// enterSchema looks before it creates: CREATE SCHEMA IF NOT EXISTS asks for a
// right on the database even where there is nothing to create.
func (m Migration) enterSchema(ctx context.Context, db *sql.DB) error {
	var there bool
	err := db.QueryRowContext(ctx, "select exists (select from pg_namespace where nspname = $1)", m.Schema).Scan(&there)
	if err != nil {
		return fmt.Errorf("look for schema: %w", err)
	}
	if !there {
		if _, err := db.ExecContext(ctx, m.sql("create schema %s")); err != nil {
			return fmt.Errorf("create schema: %w", err)
		}
	}
	if _, err := db.ExecContext(ctx, m.sql("set search_path = %s, public")); err != nil {
		return fmt.Errorf("enter schema: %w", err)
	}
	return nil
}

// sql puts the schema, whose name was checked to be plain, into a statement.
func (m Migration) sql(format string) string { return fmt.Sprintf(format, m.Schema) }
