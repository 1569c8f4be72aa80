package tenants

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
		panic(fmt.Sprintf("tenants: embedded migrations: %v", err)) // the path is a constant
	}
	return pg.Migration{Package: "tenants", Schema: "tenants", Files: files}
}
