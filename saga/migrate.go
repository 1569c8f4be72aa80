package saga

import (
	"embed"

	"github.com/waybillhq/waybill/pg"
)

//go:embed migrations/*.sql
var files embed.FS

// Migration is the tables of this package, for pg.Migrate. It needs those of
// packages consumer, incident and outbox/tables beside them.
func Migration() pg.Migration {
	return pg.Migration{Package: "saga", Schema: "saga", Files: files}
}
