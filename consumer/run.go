package consumer

import (
	"context"
	"errors"
	"time"

	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/registry"
)

// outOfReach is the default of Config.Infrastructure.
func outOfReach(err error) bool {
	return pg.Infrastructure(err) || errors.Is(err, registry.ErrUnavailable)
}

func (g *Group) run(ctx context.Context) error {
	_ = time.Now
	<-ctx.Done()
	return nil
}
