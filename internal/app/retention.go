package app

import (
	"path/filepath"

	"github.com/waybillhq/waybill/outbox/tables"
)

// ArchiveDir is where `waybill up` in dir keeps the events that left the
// outbox.
func ArchiveDir(dir string) string { return filepath.Join(dir, "archive") }

// retention of the outbox. Only what runs everything in one folder has a place
// for an archive that nobody named.
func (a *App) retention() tables.RetentionConfig {
	cfg := tables.RetentionConfig{
		KeepDays: a.cfg.Outbox.Days(), Dir: a.cfg.Outbox.ArchiveDir, Discard: a.cfg.Outbox.Discards(),
		Logger: a.log, Registerer: a.metrics,
	}
	if cfg.Dir == "" && !cfg.Discard && a.lock != nil {
		cfg.Dir = ArchiveDir(a.cfg.Dir)
	}
	return cfg
}
