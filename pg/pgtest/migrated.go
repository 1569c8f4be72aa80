//go:build unix

package pgtest

import (
	"context"
	"strings"
	"testing"

	"github.com/waybillhq/waybill/pg"
)

// Migrated is Like with the tables of the migrations, in that order.
func Migrated(t testing.TB, migrations ...pg.Migration) string {
	t.Helper()
	var names []string
	for _, m := range migrations {
		names = append(names, m.Schema+"."+m.Package)
	}
	return Like(t, strings.Join(names, " "), func(ctx context.Context, dsn string) error {
		pool, err := pg.Open(ctx, dsn, pg.Config{})
		if err != nil {
			return err
		}
		defer pool.Close()
		return pg.Migrate(ctx, pool, migrations...)
	})
}
