//go:build unix

package pgtest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// likes are the patterns of this binary by name, see Like.
var likes sync.Map

// pattern is a database that others are copied from.
type pattern struct {
	once sync.Once
	name string
	err  error
}

// Like is New with what prepare puts into a database, as the tables of a
// package: prepare is called once for the binary, and each database is a copy of
// that one. It must leave no connection open. On a server that is not ours,
// where the pattern would stay, it is called for each.
func Like(t testing.TB, name string, prepare func(ctx context.Context, dsn string) error) string {
	t.Helper()
	s, err := shared()
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	if os.Getenv(serverVariable) != "" {
		dsn := New(t)
		if err := prepare(t.Context(), dsn); err != nil {
			t.Fatalf("pgtest: prepare %s: %v", name, err)
		}
		return dsn
	}
	found, _ := likes.LoadOrStore(name, &pattern{})
	p := found.(*pattern) //nolint:forcetypeassert // nothing else is stored
	p.once.Do(func() { p.err = p.make(s, prepare) })
	if p.err != nil {
		t.Fatalf("pgtest: prepare %s: %v", name, p.err)
	}
	return s.give(t, p.name)
}

func (p *pattern) make(s server, prepare func(ctx context.Context, dsn string) error) error {
	p.name = fmt.Sprintf("pattern_%d_%d", os.Getpid(), serial.Add(1))
	ctx := context.Background()
	if err := s.create(ctx, p.name, "template0"); err != nil {
		return err
	}
	if err := prepare(ctx, withDatabase(s.app, p.name)); err != nil {
		return err
	}
	// Nobody is to be in it while it is copied, nor on the way out.
	return s.do(ctx, func(conn *pgx.Conn) error {
		for _, sql := range []string{
			"alter database " + p.name + " allow_connections false",
			"select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = '" + p.name + "'",
		} {
			if _, err := conn.Exec(ctx, sql); err != nil {
				return err
			}
		}
		return nil
	})
}
