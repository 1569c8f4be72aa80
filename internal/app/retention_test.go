package app

import (
	"testing"

	"github.com/waybillhq/waybill/internal/config"
)

func TestOnlyUpHasAnArchiveThatNobodyNamed(t *testing.T) {
	off := false
	for name, c := range map[string]struct {
		lock    *dirLock // of up alone
		outbox  config.Outbox
		dir     string
		discard bool
	}{
		"up":                 {&dirLock{}, config.Outbox{}, "data/archive", false},
		"up, named":          {&dirLock{}, config.Outbox{ArchiveDir: "/a"}, "/a", false},
		"up, without":        {&dirLock{}, config.Outbox{Archive: &off}, "", true},
		"run":                {nil, config.Outbox{}, "", false},
		"run, named":         {nil, config.Outbox{ArchiveDir: "/a"}, "/a", false},
		"run, without a one": {nil, config.Outbox{Archive: &off}, "", true},
	} {
		cfg := config.Default()
		cfg.Dir, cfg.Outbox = "data", c.outbox
		cfg.Outbox.KeepDays = new(9)
		a := &App{cfg: cfg, lock: c.lock}
		if got := a.retention(); got.Dir != c.dir || got.Discard != c.discard || got.KeepDays != 9 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
