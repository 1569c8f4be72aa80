package queue

import (
	"embed"

	"github.com/waybillhq/waybill/pg"
)

//go:embed migrations/*.sql
var files embed.FS

// Migration is the tables of this package, for pg.Migrate.
func Migration() pg.Migration {
	return pg.Migration{Package: "queue", Schema: "waybill", Files: files}
}
