package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/waybillhq/waybill/test/browser"
	"github.com/waybillhq/waybill/test/proc"
)

var desktop = browser.Look{Width: 1280, Height: 860, Locale: "en-US", Zone: "America/Sao_Paulo"}

// openDesk opens the desk in a browser of its own.
func openDesk(t *testing.T, w *proc.Waybill, with ...chromedp.ExecAllocatorOption) context.Context {
	t.Helper()
	page := browser.New(t, with...)
	browser.As(page, t, desktop)
	browser.Open(page, t, w.HTTP+"/#key="+w.DemoKey)
	live(page, t)
	return page
}

func openTrack(t *testing.T, w *proc.Waybill, path string, with ...chromedp.ExecAllocatorOption) context.Context {
	t.Helper()
	page := browser.New(t, with...)
	browser.As(page, t, desktop)
	browser.Open(page, t, w.HTTP+path)
	live(page, t)
	return page
}

func live(page context.Context, t *testing.T) {
	t.Helper()
	browser.Until[bool](page, t, `document.querySelector(".conn-live") !== null`)
}

// shows waits until the desk shows the orders in their states, each once and no
// other. States are by order.
func shows(page context.Context, t *testing.T, states map[string]string) {
	t.Helper()
	for id, state := range states {
		browser.Until[bool](page, t, fmt.Sprintf(`document.querySelector('li.row[data-id=%q][data-state=%q]') !== null`, id, state))
	}
	rows := browser.Eval[[]string](page, t, `[...document.querySelectorAll("ol > li.row")].map((row) => row.dataset.id ?? "unsaved")`)
	slices.Sort(rows)
	if len(rows) != len(states) || len(slices.Compact(rows)) != len(states) {
		t.Errorf("%d orders shown as rows %v", len(states), rows)
	}
}

// confirmed waits for an order's time from the click to its event and returns
// the order's id.
func confirmed(page context.Context, t *testing.T) (id string) {
	t.Helper()
	ms := browser.Until[float64](page, t, `Number(document.querySelector("li.row[data-ms]")?.dataset.ms ?? 0)`)
	if ms <= 0 || ms > 10_000 {
		t.Errorf("click to confirmed = %v ms", ms)
	}
	t.Logf("click to confirmed: %.1f ms", ms)
	return browser.Eval[string](page, t, `document.querySelector("li.row[data-ms]").dataset.id`)
}

func TestOneClickIsInPostgresTheLogTheReadModelAndEveryDesk(t *testing.T) {
	w := proc.Up(t)
	desk, second := openDesk(t, w), openDesk(t, w)
	browser.Click(desk, t, "#create")
	id := confirmed(desk, t)
	browser.Until[bool](desk, t, `document.querySelector(".mean").dataset.count === "1"`)
	browser.Until[bool](desk, t, `document.querySelector("#said").textContent.includes("confirmed in")`)
	shows(second, t, map[string]string{id: "CREATED"})
	if mine := browser.Eval[bool](second, t, `document.querySelector("[data-ms]") !== null`); mine {
		t.Error("the second desk takes the order for its own")
	}

	if o := read(t, w, id); o.State != "CREATED" || stored(t, w) != 1 {
		t.Errorf("in Postgres: %d orders, this one %+v", stored(t, w), o)
	}
	if events := logged(t, w); len(events) != 1 || !slices.Equal(events[id], []string{"OrderCreated@1"}) {
		t.Errorf("in the log: %v", events)
	}
	eventually(t, "the read model counts it", func() bool { return counts(t, w)["CREATED"] == 1 })
	browser.Until[bool](second, t, `document.querySelector('[data-filter="CREATED"] b')?.textContent === "1"`)

	move(t, w, id, proc.Search...)
	browser.Click(second, t, `li.row button[data-to="PICKUP_ONGOING"]`)
	shows(desk, t, map[string]string{id: "PICKUP_ONGOING"})
	eventually(t, "the read model follows", func() bool {
		n := counts(t, w)
		return n["PICKUP_ONGOING"] == 1 && n["CREATED"] == 0
	})
}

func TestDeskIsWorkedByKeyboardAlone(t *testing.T) {
	w := proc.Up(t)
	desk := openDesk(t, w)
	tabTo(desk, t, `document.activeElement.id === "create"`)
	browser.Press(desk, t, kb.Enter)
	id := confirmed(desk, t)
	move(t, w, id, proc.Search...)
	shows(desk, t, map[string]string{id: "ASSIGNED"})
	for _, to := range []string{"PICKUP_ONGOING", "ARRIVED_AT_MERCHANT"} {
		if browser.Eval[string](desk, t, `document.activeElement.dataset.to ?? ""`) != to { // the focus stays on the step forward
			tabTo(desk, t, `document.activeElement.dataset.to === "`+to+`"`)
		}
		browser.Press(desk, t, kb.Enter)
		browser.Until[bool](desk, t, `document.querySelector('li.row[data-state="`+to+`"] .chip:not(.is-pending)') !== null`)
	}
	if o := read(t, w, id); o.State != "ARRIVED_AT_MERCHANT" || o.Version != 5 {
		t.Errorf("in Postgres: %+v", o)
	}
}

func tabTo(page context.Context, t *testing.T, there string) {
	t.Helper()
	for range 80 {
		browser.Press(page, t, kb.Tab)
		if browser.Eval[bool](page, t, there) {
			return
		}
	}
	t.Fatalf("no Tab reaches %s", there)
}
