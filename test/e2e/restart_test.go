package e2e

import (
	"context"
	"testing"

	"github.com/waybillhq/waybill/test/browser"
	"github.com/waybillhq/waybill/test/proc"
)

// The program is killed under open pages, right after it answered a change and
// a creation whose events may be in no log yet. The pages come back by
// themselves and show all of it, each order once.
func TestOpenPagesOutliveAKill(t *testing.T) {
	w := proc.Up(t)
	desk := openDesk(t, w)
	browser.Click(desk, t, "#create")
	first := confirmed(desk, t)
	page := openTrack(t, w, "/track/"+read(t, w, first).Token)
	for _, each := range []context.Context{desk, page} {
		for _, noise := range []string{"ERR_CONNECTION", "ERR_INCOMPLETE_CHUNKED", "ERR_EMPTY_RESPONSE", "ERR_SOCKET", "status of 503"} {
			browser.Allow(each, noise) // a browser logs every request that fails
		}
		browser.Eval[bool](each, t, `window.unloaded = true`)
	}

	move(t, w, first, "ASSIGNING", "ASSIGNED")
	second := create(t, w)
	w.Kill()
	for _, each := range []context.Context{desk, page} {
		browser.Until[bool](each, t, `document.querySelector(".conn-reconnecting") !== null`)
	}
	w.Start()
	third := create(t, w) // before the pages are back, most likely
	live(desk, t)
	live(page, t)
	shows(desk, t, map[string]string{first: "ASSIGNED", second.ID: "CREATED", third.ID: "CREATED"})
	browser.Until[bool](page, t, `document.querySelector('#now[data-state="ASSIGNED"]') !== null`)

	fourth := create(t, w)
	move(t, w, first, "PICKUP_ONGOING")
	shows(desk, t, map[string]string{first: "PICKUP_ONGOING", second.ID: "CREATED", third.ID: "CREATED", fourth.ID: "CREATED"})
	browser.Until[bool](page, t, `document.querySelector('#now[data-state="PICKUP_ONGOING"]') !== null && document.querySelectorAll(".timeline li").length === 9`)
	browser.Until[bool](desk, t, `document.querySelector('[data-filter="CREATED"] b')?.textContent === "3"`)

	browser.Click(desk, t, "#create") // and the desk still works
	browser.Until[bool](desk, t, `document.querySelector(".mean").dataset.count === "2"`)
	for _, each := range []context.Context{desk, page} {
		if !browser.Eval[bool](each, t, `window.unloaded === true`) {
			t.Error("a page was loaded anew")
		}
	}
}
