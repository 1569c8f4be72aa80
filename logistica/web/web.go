// Package web serves the pages of the delivery product: the merchant's desk at
// /, the customer's public tracking page at /track/{token}, the courier's page at
// /courier, the merchant's webhooks at /webhooks, its figures at /analytics and the
// panel of faults at /faults.
//
// Promise: everything a page needs comes from this program. No other host is
// asked for anything, nothing is built, and the policy sent with each page
// refuses inline script and style, so text that a merchant or a customer typed
// cannot become code.
//
// Limits: the pages hold no data and no secret. They are the same bytes for
// every tenant and every token, and read what they show from the HTTP API under
// the visitor's own key or link. Whether a tracking link is valid is therefore
// the API's answer, not this package's.
package web

import (
	"embed"
	"fmt"
	"io/fs"
	"net/http"
)

//go:embed assets
var embedded embed.FS

// Register adds the pages' routes to mux. It takes only GET / (exactly),
// /courier, the merchant's webhooks at /webhooks, its figures at /analytics, the
// panel of faults at /faults and /favicon.ico, which browsers ask for where a page
// names no icon of its own.
func Register(mux *http.ServeMux) error {
	site, err := load()
	if err != nil {
		return err
	}
	mux.Handle("GET /{$}", site.page("desk.html"))
	mux.Handle("GET /track/{token}", site.page("track.html"))
	mux.Handle("GET /courier", site.page("courier.html"))
	mux.Handle("GET /webhooks", site.page("webhooks.html"))
	mux.Handle("GET /faults", site.page("faults.html"))
	mux.Handle("GET /analytics", site.page("analytics.html"))
	mux.Handle("GET /favicon.ico", site.page("icon.svg")) // browsers go by its type, not by its name
	mux.Handle("GET /assets/{path...}", site.assets())
	return nil
}

// Handler serves the pages alone.
func Handler() (http.Handler, error) {
	mux := http.NewServeMux()
	if err := Register(mux); err != nil {
		return nil, err
	}
	return mux, nil
}

// load reads the embedded files and the stream client that package push
// publishes, so that both ends of the stream change in one place.
func load() (*site, error) {
	root, err := fs.Sub(embedded, "assets")
	if err != nil {
		return nil, fmt.Errorf("open embedded pages: %w", err)
	}
	return newSite(root, streamClient())
}
