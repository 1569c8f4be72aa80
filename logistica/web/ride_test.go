package web

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"github.com/waybillhq/waybill/test/browser"
)

// openRides is the desk of a merchant with one order out with its courier.
func openRides(t *testing.T) (context.Context, *fake) {
	t.Helper()
	ctx, f, _ := openDesk(t, browser.NoWebGL)
	f.with(func() {
		f.make("k", map[string]any{
			"items": feast, "pickup": pickup, "dropoff": dropoff, "promised_at": time.Now().Add(45 * time.Minute),
			"customer": map[string]any{"name": "Ana Moura", "phone": "(11) 91234-5678"},
		})
		f.assign(firstOrder)
	})
	browser.Until[bool](ctx, t, `document.querySelector('li.row .ride')?.textContent.includes("Marina Souza")`)
	return ctx, f
}

// The stream tells who carries an order by id alone; the name is the API's.
func TestDeskShowsItsOrdersOnTheWayWithTheirCouriers(t *testing.T) {
	ctx, f := openRides(t)
	browser.Until[bool](ctx, t, `document.querySelector("li.row .ride").textContent.includes("at the store in 6 min")`)
	browser.Until[bool](ctx, t, `document.querySelector('.fleet[data-rides="1"] .map')?.dataset.map && document.querySelectorAll(".fleet .map-mark-pickup, .fleet .map-mark-dropoff").length === 2`)
	now := time.Now()
	f.with(func() { f.locate(firstOrder, 0.2, now) })
	browser.Until[bool](ctx, t, `document.querySelector(".fleet .map-mark-courier")?.textContent === "Marina"`)
	f.with(func() {
		f.locate(firstOrder, 0.6, now.Add(time.Second))
		f.locate(firstOrder, 0.3, now.Add(500*time.Millisecond)) // late
	})
	browser.Until[bool](ctx, t, courierLat+` === -23.56272`)
	f.with(func() {
		for _, to := range []string{"PICKUP_ONGOING", "ARRIVED_AT_MERCHANT", "PICKED_UP", "DELIVERY_ONGOING"} {
			f.move(f.orders[firstOrder], to)
		}
	})
	browser.Until[bool](ctx, t, `document.querySelector("li.row .ride").textContent.includes("at the door in 17 min")`)
	f.with(func() { f.move(f.orders[firstOrder], "ARRIVED_AT_CUSTOMER"); f.move(f.orders[firstOrder], "DELIVERED") })
	browser.Until[bool](ctx, t, `document.querySelector('.fleet[data-rides="0"]') && !document.querySelector(".map-mark") && !document.querySelector(".ride")`)
}

// Whoever opens a desk sees at once what its stream would tell only with the
// next positions, and orders that are older than the list's first page.
func TestDeskOpenedLaterFindsWhoIsOutAlready(t *testing.T) {
	f, url := serve(t)
	f.with(func() {
		f.make("k", map[string]any{"items": feast, "pickup": pickup, "dropoff": dropoff})
		f.assign(firstOrder)
		f.locate(firstOrder, 0.5, time.Now())
		f.orders[firstOrder]["updated_at"] = time.Now().Add(-time.Minute)
	})
	ctx := browser.New(t, browser.NoWebGL)
	browser.As(ctx, t, browser.Look{Width: 1280, Height: 800, Locale: "en-US", Zone: "America/Sao_Paulo"})
	browser.Open(ctx, t, url+"/#key="+testKey)
	browser.Until[bool](ctx, t, `document.querySelector(".fleet .map-mark-courier")?.textContent === "Marina"`)

	f.with(func() {
		for i := range 60 {
			f.make(string(rune('a'+i)), map[string]any{"items": []any{}})
		}
	})
	browser.Open(ctx, t, url+"/?later#key="+testKey)
	live(ctx, t)
	browser.Until[bool](ctx, t, `document.querySelectorAll("li.row").length === 50`)
	f.with(func() { f.locate(firstOrder, 0.6, time.Now()) })
	browser.Until[bool](ctx, t, `document.querySelector(".fleet .map-mark-courier")?.textContent === "Marina"`)
	if rows := browser.Eval[int](ctx, t, `document.querySelectorAll("li.row").length`); rows != 50 {
		t.Errorf("%d rows: an old order has slipped into the list", rows)
	}
	browser.Click(ctx, t, `.fleet .map-mark-courier span`)
	browser.Until[bool](ctx, t, `document.querySelector('dialog.sheet[data-order="`+firstOrder+`"]') !== null`)
}

func TestDetailsTellAllOfAnOrder(t *testing.T) {
	ctx, f := openRides(t)
	f.with(func() {
		f.locate(firstOrder, 0.4, time.Now())
		f.orders[firstOrder]["delivery_code_tries"] = 5
	})
	browser.Click(ctx, t, "li.row .c-items")
	for part, want := range map[string]string{
		`[data-courier]`: "Marina Souza by motorbike", `[data-attempt]`: "1", `[data-fee]`: "1.50", `[data-code]`: "4071", `[data-eta]`: "in 17 min",
		`[data-customer]`: "Ana Moura", `.goods`: "Feijoada para dois", `.places`: "Alameda Santos, 900", `.whereabouts`: "from the store",
		`.history [data-state="ASSIGNED"]`: "Courier assigned",
	} {
		browser.Until[bool](ctx, t, `document.querySelector("dialog.sheet "+`+strconv.Quote(part)+`)?.textContent.replace(/\s+/g, " ").includes("`+want+`")`)
	}
	browser.Until[bool](ctx, t, `document.querySelector(".sheet .map").dataset.map && document.querySelector(".sheet .map-mark-courier") !== null`)
	browser.Until[bool](ctx, t, `document.querySelector(".sheet .facts").textContent.includes("Locked after five")`)
	browser.Click(ctx, t, "[data-reset]")
	browser.Until[bool](ctx, t, `!document.querySelector("[data-reset]")`)
	f.with(func() { f.move(f.orders[firstOrder], "PICKUP_ONGOING") }) // and goes on as it happens
	browser.Until[bool](ctx, t, `document.querySelector('.sheet[data-state="PICKUP_ONGOING"] .chip:not(.is-pending)') && document.querySelector('.sheet .history [data-state="PICKUP_ONGOING"]') !== null`)
	browser.Click(ctx, t, `.sheet button[data-to="ARRIVED_AT_MERCHANT"]`)
	browser.Until[bool](ctx, t, `document.querySelector('.sheet[data-state="ARRIVED_AT_MERCHANT"] .chip:not(.is-pending)') !== null`)
}

func TestDetailsWorkByKeyboardAndGiveTheFocusBack(t *testing.T) {
	ctx, _ := openRides(t)
	tabTo(ctx, t, `document.activeElement.classList.contains("open")`)
	browser.Press(ctx, t, kb.Enter)
	browser.Until[bool](ctx, t, `document.querySelector("dialog.sheet[open] .history") !== null && document.querySelector("dialog.sheet").contains(document.activeElement)`)
	tabTo(ctx, t, `document.activeElement.dataset?.reassign !== undefined`)
	browser.Press(ctx, t, kb.Enter)
	browser.Until[bool](ctx, t, `document.querySelector("dialog.ask[open]")?.textContent.includes("not asked again")`)
	browser.Press(ctx, t, kb.Escape)
	browser.Until[bool](ctx, t, `!document.querySelector("dialog.ask") && document.activeElement.dataset?.reassign !== undefined`)
	browser.Press(ctx, t, kb.Escape)
	browser.Until[bool](ctx, t, `!document.querySelector("dialog") && document.activeElement.classList.contains("open")`)
}

func TestOrderIsGivenToAnotherCourier(t *testing.T) {
	ctx, f := openRides(t)
	browser.Allow(ctx, "status of 409")
	f.with(func() { f.refuseMoves = true })
	browser.Click(ctx, t, "li.row .open")
	browser.Click(ctx, t, "[data-reassign]")
	browser.Click(ctx, t, "dialog.ask [data-yes]")
	browser.Until[bool](ctx, t, `document.querySelector(".sheet-foot .row-note")?.textContent.includes("the courier has the goods")`)

	gone := make(chan struct{})
	f.with(func() { f.refuseMoves, f.letGo = false, func() { close(gone) } })
	browser.Click(ctx, t, "[data-reassign]")
	browser.Click(ctx, t, "dialog.ask [data-yes]")
	<-gone
	browser.Until[bool](ctx, t, `document.querySelector("[data-reassign][aria-disabled]") && document.querySelector("li.row .ride").textContent.includes("letting the courier go")`)
	if state := browser.Eval[string](ctx, t, `document.querySelector("li.row").dataset.state`); state != "ASSIGNED" {
		t.Errorf("shown as %s before anything happened", state)
	}
	f.with(func() { f.move(f.orders[firstOrder], "CREATED") })
	browser.Until[bool](ctx, t, `document.querySelector('li.row[data-state="CREATED"] [data-attempt="2"]') && document.querySelector(".sheet [data-attempt]").textContent === "2" && document.querySelector(".sheet [data-courier]").textContent === "none yet"`)
	browser.Until[bool](ctx, t, `document.querySelector("li.row .ride").textContent.includes("looking for another courier")`)
}

func TestDetailsSayWhyNobodyTookAnOrderAndSearchAgain(t *testing.T) {
	ctx, f, _ := openDesk(t, browser.NoWebGL)
	f.with(func() {
		f.make("k", map[string]any{"items": feast, "pickup": pickup, "dropoff": dropoff})
		f.move(f.orders[firstOrder], "UNASSIGNABLE")
	})
	browser.Until[bool](ctx, t, `document.querySelector("li.row .ride")?.textContent.includes("no courier was found")`)
	browser.Click(ctx, t, "li.row .open")
	browser.Until[bool](ctx, t, `document.querySelector(".sheet [data-why]")?.textContent.includes("No courier was free in time.")`)
	browser.Click(ctx, t, `.sheet button[data-to="CREATED"]`)
	browser.Until[bool](ctx, t, `document.querySelector('.sheet[data-state="CREATED"] .chip:not(.is-pending)') && !document.querySelector("[data-why]")`)
	browser.Click(ctx, t, `.sheet button[data-to="CANCELLED"]`)
	browser.Click(ctx, t, `dialog.ask [data-yes]`)
	browser.Until[bool](ctx, t, `document.querySelector('.sheet[data-state="CANCELLED"]') !== null`)
}
