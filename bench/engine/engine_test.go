package engine

import (
	"testing"

	"github.com/jackc/pgx/v5"
)

func TestDatabaseIsReplacedInEveryFormOfConnectionString(t *testing.T) {
	for _, dsn := range []string{
		"postgres://u:p@h:5433/d?sslmode=disable",
		"postgresql://u:p@h:5433/?dbname=d&sslmode=disable",
		"host=h port=5433 user=u password=p dbname=d sslmode=disable",
		"host=h port=5433 user=u password=p sslmode=disable",
	} {
		cfg, err := pgx.ParseConfig(withDatabase(dsn, "bench"))
		if err != nil || cfg.Database != "bench" || cfg.Host != "h" || cfg.Port != 5433 || cfg.User != "u" || cfg.Password != "p" {
			t.Errorf("%s became %+v: %v", dsn, cfg, err)
		}
	}
}
