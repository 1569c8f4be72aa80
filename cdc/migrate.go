package cdc

import (
	"embed"

	"github.com/waybillhq/waybill/pg"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Migration is this package's part of the schema waybill.
func Migration() pg.Migration {
	return pg.Migration{Package: "cdc", Schema: "waybill", Files: migrations}
}
