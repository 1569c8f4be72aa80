package analytics

import (
	"embed"
	"fmt"
	"io/fs"

	"github.com/waybillhq/waybill/pg"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Migration is this package's tables.
func Migration() pg.Migration {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		panic(fmt.Sprintf("analytics: embedded migrations: %v", err)) // the path is a constant
	}
	return pg.Migration{Package: "analytics", Schema: "analytics", Files: files}
}
