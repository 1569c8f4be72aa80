package app

import (
	"context"
	"net/http"

	"github.com/waybillhq/waybill/consumer/deadhttp"
	"github.com/waybillhq/waybill/internal/catalogue"
	"github.com/waybillhq/waybill/logistica/web"
)

// pages is what the API's server serves beside the API: the product's pages, the
// catalogue of its events, and the dead letters for operators.
func (a *App) pages(p *product) func(*http.ServeMux) error {
	return func(mux *http.ServeMux) error {
		deadhttp.Register(mux, a.engines.db, deadhttp.Config{
			Key: a.cfg.OperatorKey, Logger: a.log,
			Decode: func(ctx context.Context, value []byte) ([]byte, error) {
				_, body, err := p.decoder.DecodeAny(ctx, value)
				return body, err
			},
		})
		(&catalogue.Server{
			Get: func(ctx context.Context) (*catalogue.Catalogue, error) {
				return catalogue.FromRegistry(ctx, "Logística", a.engines.registry, nil)
			},
			Version: "1", Logger: a.log,
		}).Register(mux)
		return web.Register(mux)
	}
}
