package dispatch

import (
	"embed"

	"github.com/waybillhq/waybill/pg"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Migration is this package's tables.
func Migration() pg.Migration {
	return pg.Migration{Package: "dispatch", Schema: "dispatch", Files: migrations}
}
