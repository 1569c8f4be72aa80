package app

import (
	"context"
	"net/http"

	"github.com/waybillhq/waybill/consumer/deadhttp"
	"github.com/waybillhq/waybill/logistica/web"
)

// pages is what the API's server serves beside the API: the product's pages, and
// the dead letters for operators.
func (a *App) pages(p *product) func(*http.ServeMux) error {
	return func(mux *http.ServeMux) error {
		deadhttp.Register(mux, a.engines.db, deadhttp.Config{
			Key: a.cfg.OperatorKey, Logger: a.log,
			Decode: func(ctx context.Context, value []byte) ([]byte, error) {
				_, body, err := p.decoder.DecodeAny(ctx, value)
				return body, err
			},
		})
		return web.Register(mux)
	}
}
