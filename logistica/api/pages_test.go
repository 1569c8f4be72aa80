package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/waybillhq/waybill/logistica/api"
	"github.com/waybillhq/waybill/logistica/web"
)

func TestPagesStandBesideTheAPI(t *testing.T) {
	t.Parallel()
	m := newBed(t, func(d *api.Deps, _ *api.Config) { d.Pages = web.Register }).merchant(t, "Padaria")
	o := m.create(t)
	for _, path := range []string{"/", "/track/" + o.TrackingToken} {
		a := m.bed.ask(t, "GET", path, "")
		csp := a.header.Get("Content-Security-Policy")
		if a.status != http.StatusOK || !strings.HasPrefix(a.header.Get("Content-Type"), "text/html") || !strings.Contains(csp, "default-src 'none'") {
			t.Errorf("%s: %d %s, policy %q", path, a.status, a.header.Get("Content-Type"), csp)
		}
	}
	m.bed.ask(t, "GET", "/nothing", "").problem(t, http.StatusNotFound)
	m.bed.ask(t, "POST", "/", "").problem(t, http.StatusMethodNotAllowed)
	if a := m.bed.ask(t, "GET", "/track/"+o.TrackingToken+"/events", ""); a.header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("stream: %v", a.header)
	}
}
