package e2e

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/waybillhq/waybill/test/browser"
	"github.com/waybillhq/waybill/test/proc"
)

func TestTrackingPageFollowsTheDeskToTheDoorAndNamesNobody(t *testing.T) {
	w := proc.Up(t)
	desk := openDesk(t, w)
	browser.Click(desk, t, "#create")
	id := confirmed(desk, t)
	o := read(t, w, id)
	if o.Customer.Name == "" || o.Customer.Phone == "" {
		t.Fatalf("the order has no personal data to keep: %+v", o)
	}
	link := browser.Until[string](desk, t, `document.querySelector("li.row a.track-link")?.getAttribute("href")`)
	page := openTrack(t, w, link)
	course := follow(t, w, "", link+"/events", "")
	browser.Until[bool](page, t, `document.querySelector('#now[data-state="CREATED"]') !== null`)
	browser.Eval[bool](page, t, `window.unloaded = true`)

	var told []string
	for _, to := range walk {
		if slices.Contains(proc.Search, to) {
			move(t, w, id, to)
		} else {
			browser.Click(desk, t, `li.row button[data-to="`+to+`"]`)
		}
		browser.Until[bool](page, t, `document.querySelector('#now[data-state="`+to+`"]') !== null && document.querySelector('[data-step="`+to+`"] time') !== null`)
		told = append(told, course.next().Raw, browser.Eval[string](page, t, `document.documentElement.outerHTML`))
		told = append(told, answered(t, w, "/v1/track/"+o.Token))
		browser.Until[bool](desk, t, `document.querySelector('li.row[data-state="`+to+`"] .chip:not(.is-pending)') !== null`)
	}
	told = append(told, course.next().Raw) // a delivery is told once more, as OrderDelivered
	browser.Until[bool](page, t, `document.querySelector(".conn-ended") !== null && document.querySelectorAll(".timeline li").length === 9 && window.unloaded`)

	private := []string{o.Customer.Name, o.Customer.Phone, o.Dropoff.Street, o.Dropoff.CEP, o.Pickup.Street, o.Pickup.CEP, w.DemoKey}
	for _, text := range told {
		for _, secret := range private {
			if strings.Contains(text, secret) {
				t.Errorf("the public is told %q:\n%.300s", secret, text)
			}
		}
	}
	asked := browser.Eval[[]string](page, t, `performance.getEntriesByType("resource").map((r) => new URL(r.name).pathname).filter((path) => !path.startsWith("/assets/"))`)
	for _, path := range asked {
		if !slices.Contains([]string{"/v1/track/" + o.Token, link + "/events"}, path) {
			t.Errorf("the page also reads %s", path)
		}
	}
}

// answered is what the public gets at a path, without any key.
func answered(t *testing.T, w *proc.Waybill, path string) string {
	t.Helper()
	public := *w
	public.DemoKey = ""
	status, body, err := public.Request(t.Context(), http.MethodGet, path, "")
	if err != nil || status != http.StatusOK {
		t.Fatalf("%s: %d %v", path, status, err)
	}
	return string(body)
}
