package e2e

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/waybillhq/waybill/test/browser"
	"github.com/waybillhq/waybill/test/proc"
)

// The merchant watches an order find its courier and the courier ride, and gives
// it to another; the customer sees the same of it, and never more.
func TestDeskAndTrackingPageSeeTheCourierFoundAndRiding(t *testing.T) {
	w := proc.Up(t)
	key := courier(t, w)
	desk := openDesk(t, w, browser.NoWebGL)
	browser.Click(desk, t, "#create")
	id := confirmed(desk, t)
	browser.Until[bool](desk, t, `document.querySelector("li.row .ride").textContent === "looking for a courier"`)
	page := openTrack(t, w, "/track/"+read(t, w, id).Token, browser.NoWebGL)

	ask(t, w, key, http.MethodPost, "/v1/courier/status", `{"state":"AVAILABLE"}`, http.StatusOK, nil)
	browser.Until[bool](desk, t, `document.querySelector('li.row[data-state="ASSIGNED"] .ride')?.textContent.startsWith("Davi Moreira · at the store in")`)
	browser.Until[bool](page, t, `document.querySelector('#now[data-state="ASSIGNED"]') && document.querySelector(".who")?.textContent.includes("Davi")`)

	at := rides(t, w, key)
	for _, lat := range []float64{-23.5601, -23.5615, -23.5629} {
		at(lat, desk, page)
	}
	if name := browser.Eval[string](desk, t, `document.querySelector(".fleet .map-mark-courier").textContent`); name != "Davi" {
		t.Errorf("the desk's map calls the courier %q", name)
	}
	ask(t, w, key, http.MethodPost, "/v1/courier/jobs/"+id+"/accept", "", http.StatusOK, nil)
	browser.Until[bool](page, t, `document.querySelector('#now[data-state="PICKUP_ONGOING"]') !== null`)

	browser.Click(desk, t, `li.row[data-state="PICKUP_ONGOING"] .open`)
	browser.Until[bool](desk, t, `document.querySelector(".sheet .map-mark-courier") && document.querySelector(".sheet [data-courier]").textContent.includes("Davi Moreira") && document.querySelector(".sheet [data-fee]").textContent.includes("R$")`)
	browser.Click(desk, t, "[data-reassign]")
	browser.Click(desk, t, "dialog.ask [data-yes]")
	browser.Until[bool](desk, t, `document.querySelector("li.row .ride").textContent === "looking for another courier · attempt 2"`)
	browser.Until[bool](desk, t, `document.querySelector(".sheet .history")?.textContent.includes("Given to another courier.") && !document.querySelector(".map-mark-courier")`)
	browser.Until[bool](page, t, `document.querySelector('#now[data-state="CREATED"], #now[data-state="ASSIGNING"]') && !document.querySelector(".map-mark-courier") && !document.querySelector(".who")`)
}

// rides is a courier who reports where they are until pages show them there. A
// report may be lost, so it is made again after a while.
func rides(t *testing.T, w *proc.Waybill, key string) func(lat float64, pages ...context.Context) {
	t.Helper()
	seq := 0
	return func(lat float64, pages ...context.Context) {
		t.Helper()
		at := fmt.Sprintf("%.5f,-46.65870", lat)
		var last time.Time
		eventually(t, "the pages show the courier at "+at, func() bool {
			if time.Since(last) > 5*time.Second {
				last = time.Now()
				seq++
				ask(t, w, key, http.MethodPost, "/v1/courier/positions", fmt.Sprintf(
					`{"positions":[{"seq":%d,"lat":%.5f,"lng":-46.6587,"heading_deg":150,"fix_time":%q}]}`, seq, lat, last.UTC().Format(time.RFC3339Nano)), http.StatusAccepted, nil)
			}
			for _, page := range pages {
				if browser.Eval[string](page, t, `document.querySelector(".map-mark-courier")?.dataset.at ?? ""`) != at {
					return false
				}
			}
			return true
		})
	}
}
