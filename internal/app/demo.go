package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"

	"github.com/waybillhq/waybill/logistica/tenants"
)

// The merchant whose key `up` prints.
var demoTenant = uuid.MustParse("0190f5e0-0000-7000-8000-000000000001")

const demoName = "Padaria Aurora"

// demonstrator is the demonstration's merchant, if there is one here.
func (a *App) demonstrator() uuid.UUID {
	if a.lock == nil {
		return uuid.Nil
	}
	return demoTenant
}

// seedDemo makes the demonstration's merchant, with a key kept in the data
// folder so that it is the same at the next start. Only what runs everything
// in one folder has a demonstration.
func (a *App) seedDemo(ctx context.Context, directory *tenants.Directory) error {
	if a.lock == nil {
		return nil
	}
	path := filepath.Join(a.cfg.Dir, "demo.key")
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		b = []byte(tenants.NewKey(demoTenant) + "\n")
		err = writePrivate(path, b)
	}
	if err != nil {
		return fmt.Errorf("demonstration's key: %w", err)
	}
	a.demoKey = strings.TrimSpace(string(b))
	return directory.Seed(ctx, demoTenant, demoName, a.demoKey)
}
