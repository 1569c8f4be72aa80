package web

import (
	"context"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/waybillhq/waybill/test/browser"
)

func openDesk(t *testing.T, with ...chromedp.ExecAllocatorOption) (context.Context, *fake, string) {
	t.Helper()
	f, url := serve(t)
	ctx := browser.New(t, with...)
	browser.As(ctx, t, browser.Look{Width: 1280, Height: 800, Locale: "en-US", Zone: "America/Sao_Paulo"})
	browser.Open(ctx, t, url+"/#key="+testKey)
	live(ctx, t)
	return ctx, f, url
}

func live(ctx context.Context, t *testing.T) {
	t.Helper()
	browser.Until[bool](ctx, t, `document.querySelector(".conn-live") !== null`)
}

func TestOneClickCreatesAnOrderConfirmedByItsEvent(t *testing.T) {
	ctx, _, _ := openDesk(t)
	browser.Click(ctx, t, "#create")
	ms := browser.Until[float64](ctx, t, `Number(document.querySelector("li.row[data-ms]")?.dataset.ms ?? 0)`)
	if ms <= 0 || ms > 10_000 {
		t.Errorf("create to confirmed = %v ms", ms)
	}
	browser.Until[bool](ctx, t, `document.querySelector("#said").textContent.includes("confirmed in")`)
	browser.Until[bool](ctx, t, `document.querySelector(".mean").dataset.count === "1"`)
	browser.Until[bool](ctx, t, `document.querySelector('[data-filter="CREATED"] b')?.textContent === "1"`)
	if n := browser.Eval[int](ctx, t, `document.querySelectorAll("li.row").length`); n != 1 {
		t.Errorf("%d rows for one order", n)
	}
}

func TestEventBeforeTheAnswerIsNotLostAndShowsNoSecondRow(t *testing.T) {
	ctx, f, _ := openDesk(t)
	gate := make(chan struct{})
	f.with(func() { f.answerAfter = gate })
	browser.Click(ctx, t, "#create")
	browser.Until[bool](ctx, t, `document.querySelector('li[data-creation="sending"]') !== null`)
	browser.Until[bool](ctx, t, `document.querySelector('[data-filter="CREATED"] b')?.textContent === "1"`) // its event has come
	if n := browser.Eval[int](ctx, t, `document.querySelectorAll("li.row").length`); n != 1 {
		t.Errorf("%d rows while the answer is under way, want the optimistic one", n)
	}
	close(gate)
	browser.Until[bool](ctx, t, `document.querySelector("li.row[data-ms]") !== null`)
	if n := browser.Eval[int](ctx, t, `document.querySelectorAll("li.row").length`); n != 1 {
		t.Errorf("%d rows afterwards", n)
	}
}

func TestRetryOfAFailedCreationUsesTheSameKey(t *testing.T) {
	ctx, f, _ := openDesk(t)
	browser.Allow(ctx, "status of 422")
	f.with(func() { f.failCreates = 1 })
	browser.Click(ctx, t, "#create")
	browser.Until[bool](ctx, t, `document.querySelector("li.is-failed .row-note")?.textContent.includes("outside the delivery area")`)
	browser.Screenshot(ctx, t, "desk-failed")
	browser.Click(ctx, t, "li.is-failed .c-act button")
	browser.Until[bool](ctx, t, `document.querySelector("li.row[data-ms]") !== null`)
	f.with(func() {
		if len(f.creationKeys) != 2 || f.creationKeys[0] != f.creationKeys[1] || f.creationKeys[0] == "" {
			t.Errorf("keys sent: %q", f.creationKeys)
		}
	})
}

func TestRetryAfterALostAnswerFindsTheOrderAlreadyMade(t *testing.T) {
	ctx, f, _ := openDesk(t)
	browser.Allow(ctx, "status of 500")
	f.with(func() { f.loseAnswers = 1 })
	browser.Click(ctx, t, "#create")
	browser.Until[bool](ctx, t, `document.querySelector("li.is-failed") !== null`)
	browser.Click(ctx, t, "li.is-failed .c-act button")
	browser.Until[bool](ctx, t, `document.querySelector("li.row[data-ms]") !== null && document.querySelectorAll("li.row").length === 1`)
	f.with(func() {
		if len(f.orders) != 1 {
			t.Errorf("%d orders", len(f.orders))
		}
	})
}

// carried gives the first order its courier, and waits for the map that comes with
// the first of them: it moves the list.
func carried(ctx context.Context, t *testing.T, f *fake) {
	t.Helper()
	f.with(func() { f.assign(firstOrder) })
	browser.Until[bool](ctx, t, `document.querySelector(".fleet .map") !== null`)
}

func TestStatusChangeIsShownAtOnceAndSettledByItsEvent(t *testing.T) {
	ctx, f, _ := openDesk(t)
	browser.Click(ctx, t, "#create")
	browser.Until[bool](ctx, t, `document.querySelector("li.row[data-ms]") !== null`)
	carried(ctx, t, f)
	for _, to := range []string{"PICKUP_ONGOING", "ARRIVED_AT_MERCHANT", "PICKED_UP", "DELIVERY_ONGOING", "ARRIVED_AT_CUSTOMER", "DELIVERED"} {
		browser.Click(ctx, t, `li.row button[data-to="`+to+`"]`)
		browser.Until[bool](ctx, t, `document.querySelector('li.row[data-state="`+to+`"] .chip:not(.is-pending)') !== null`)
	}
	browser.Until[bool](ctx, t, `document.querySelector("li.row .c-act").textContent.includes("No further step")`)
	browser.Until[bool](ctx, t, `document.querySelector('[data-filter="DELIVERED"] b')?.textContent === "1"`)
}

func TestRefusedStatusChangeSaysWhatIsAllowed(t *testing.T) {
	ctx, f, _ := openDesk(t)
	browser.Allow(ctx, "status of 409")
	browser.Click(ctx, t, "#create")
	browser.Until[bool](ctx, t, `document.querySelector("li.row[data-ms]") !== null`)
	carried(ctx, t, f)
	f.with(func() { f.refuseMoves = true })
	browser.Click(ctx, t, `li.row button[data-to="PICKUP_ONGOING"]`)
	browser.Until[bool](ctx, t, `document.querySelector("li.row .row-note")?.textContent.includes("Possible now: Going to pickup, Cancelled")`)
	browser.Screenshot(ctx, t, "desk-refused")
	if state := browser.Eval[string](ctx, t, `document.querySelector("li.row").dataset.state`); state != "ASSIGNED" {
		t.Errorf("row shows %s after a refusal", state)
	}
}

func TestWhereNobodyTookItTheMerchantSearchesAgain(t *testing.T) {
	ctx, f, _ := openDesk(t)
	browser.Click(ctx, t, "#create")
	browser.Until[bool](ctx, t, `document.querySelector("li.row[data-ms]") !== null`)
	if n := browser.Eval[int](ctx, t, `document.querySelectorAll("li.row button[data-to]").length`); n != 1 {
		t.Errorf("%d steps offered while a courier is looked for, want the cancellation alone", n)
	}
	f.with(func() { f.move(f.orders[firstOrder], "UNASSIGNABLE") })
	browser.Until[bool](ctx, t, `document.querySelector('li.row[data-state="UNASSIGNABLE"] button.step[data-to="CREATED"]')?.textContent === "Search again"`)
	browser.Click(ctx, t, `li.row button[data-to="CREATED"]`)
	browser.Until[bool](ctx, t, `document.querySelector('li.row[data-state="CREATED"] .chip:not(.is-pending)') !== null`)
}

func TestCancellingAsksFirst(t *testing.T) {
	ctx, _, _ := openDesk(t)
	browser.Click(ctx, t, "#create")
	browser.Click(ctx, t, `li.row button[data-to="CANCELLED"]`)
	browser.Until[bool](ctx, t, `document.querySelector("dialog[open]") !== null`)
	browser.Screenshot(ctx, t, "desk-dialog")
	browser.Press(ctx, t, kb.Escape)
	browser.Until[bool](ctx, t, `document.querySelector("dialog") === null`)
	browser.Click(ctx, t, `li.row button[data-to="CANCELLED"]`)
	browser.Click(ctx, t, `dialog [data-yes]`)
	browser.Until[bool](ctx, t, `document.querySelector('li.row[data-state="CANCELLED"]') !== null`)
}

func TestOrdersOfOthersAppearByTheirEventsAndGainTheirLink(t *testing.T) {
	ctx, f, _ := openDesk(t)
	f.with(func() {
		f.make("another desk", map[string]any{"items": []any{map[string]any{"name": "Tapioca", "quantity": 2.0, "unit_price": 1500.0}}})
	})
	browser.Until[bool](ctx, t, `document.querySelector("li.row .c-items")?.textContent.includes("2× Tapioca")`)
	browser.Until[bool](ctx, t, `document.querySelector('li.row a.track-link[href="/track/tok1"][target="_blank"]') !== null`)
}

func TestListStaysBoundedAndLoadsMore(t *testing.T) {
	ctx, f, _ := openDesk(t)
	f.with(func() {
		for i := range 300 {
			f.make(string(rune('a'+i)), map[string]any{"items": []any{}})
		}
	})
	browser.Until[bool](ctx, t, `document.querySelector('[data-filter="CREATED"] b')?.textContent === "300" && document.querySelectorAll("li.row a.track-link").length === 200`)
	for _, want := range []string{"250", "300"} {
		browser.Click(ctx, t, ".more")
		browser.Until[bool](ctx, t, `document.querySelectorAll("li.row").length === `+want)
	}
	browser.Until[bool](ctx, t, `document.querySelector(".more") === null`)
}

func TestCountsCatchUpWithAReadModelThatLags(t *testing.T) {
	ctx, f, _ := openDesk(t)
	f.with(func() { f.staleCounts = 3 })
	browser.Click(ctx, t, "#create")
	browser.Until[bool](ctx, t, `document.querySelector("li.row[data-ms]") !== null`)
	browser.Until[bool](ctx, t, `document.querySelector('[data-filter="CREATED"] b')?.textContent === "1"`)
	f.with(func() {
		if f.staleCounts != 0 {
			t.Errorf("%d stale counts were not asked for", f.staleCounts)
		}
	})
}

func TestFilterShowsOneState(t *testing.T) {
	ctx, f, _ := openDesk(t)
	browser.Click(ctx, t, "#create")
	browser.Click(ctx, t, "#create")
	browser.Until[bool](ctx, t, `document.querySelectorAll("li.row[data-ms]").length === 2`)
	f.with(func() { f.move(f.orders[firstOrder], "ASSIGNING") })
	browser.Click(ctx, t, `[data-filter="ASSIGNING"]`)
	browser.Until[bool](ctx, t, `document.querySelectorAll("li.row").length === 1 && document.querySelector("li.row").dataset.state === "ASSIGNING"`)
	browser.Click(ctx, t, `[data-filter=""]`)
	browser.Until[bool](ctx, t, `document.querySelectorAll("li.row").length === 2`)
}

func TestKeyIsTypedKeptForTheTabAndLeavesTheAddress(t *testing.T) {
	_, url := serve(t)
	ctx := browser.New(t)
	browser.Allow(ctx, "status of 401")
	browser.Open(ctx, t, url+"/")
	browser.Do(ctx, t, chromedp.SendKeys(chromedp.CSS("input"), "wb_wrong"+kb.Enter))
	browser.Until[bool](ctx, t, `document.querySelector("[role=alert]")?.textContent.includes("not known")`)
	browser.Screenshot(ctx, t, "desk-key")
	browser.Open(ctx, t, url+"/#key="+testKey)
	live(ctx, t)
	if hash := browser.Eval[string](ctx, t, `location.href`); hash != url+"/" {
		t.Errorf("address still shows %s", hash)
	}
	browser.Do(ctx, t, chromedp.Reload())
	live(ctx, t)
}

func TestTheWholeDeskWorksByKeyboard(t *testing.T) {
	ctx, f, _ := openDesk(t)
	browser.Press(ctx, t, kb.Tab)
	if first := browser.Eval[string](ctx, t, `document.activeElement.className`); first != "skip" {
		t.Errorf("the first Tab reaches %q, want the skip link", first)
	}
	tabTo(ctx, t, `document.activeElement.id === "create"`)
	browser.Press(ctx, t, kb.Enter)
	browser.Until[bool](ctx, t, `document.querySelector("li.row[data-ms]") !== null`)
	f.with(func() { f.assign(firstOrder) })
	browser.Until[bool](ctx, t, `document.querySelector('li.row[data-state="ASSIGNED"] button[data-to="PICKUP_ONGOING"]') !== null`)
	tabTo(ctx, t, `document.activeElement.dataset?.to === "PICKUP_ONGOING"`)
	browser.Press(ctx, t, kb.Enter)
	browser.Until[bool](ctx, t, `document.querySelector('li.row[data-state="PICKUP_ONGOING"] button[data-to="ARRIVED_AT_MERCHANT"]:not([aria-disabled])') !== null`)
	browser.Press(ctx, t, kb.Enter) // the focus has stayed on the step forward
	browser.Until[bool](ctx, t, `document.querySelector('li.row[data-state="ARRIVED_AT_MERCHANT"]') !== null && document.activeElement.dataset.to === "PICKED_UP"`)
	tabTo(ctx, t, `document.activeElement.classList.contains("track-link")`)
}

func TestDeskAndWebhooksLeadToEachOther(t *testing.T) {
	ctx, _, _ := openDesk(t)
	browser.Allow(ctx, "status of 404") // these pages' stand-in has no webhooks
	browser.Click(ctx, t, "#webhooks")
	browser.Until[bool](ctx, t, `document.querySelector(".hook-gone")?.textContent.includes("runs without them")`)
	browser.Click(ctx, t, `.top a[href="/"]`)
	live(ctx, t)
}

// tabTo presses Tab until the expression holds, and checks that every stop is
// visible and shows its focus.
func tabTo(ctx context.Context, t *testing.T, expression string) {
	t.Helper()
	for range 80 {
		browser.Press(ctx, t, kb.Tab)
		if fault := browser.Eval[string](ctx, t, focusFault); fault != "" {
			t.Fatalf("focus: %s", fault)
		}
		if browser.Eval[bool](ctx, t, expression) {
			return
		}
	}
	t.Fatalf("no Tab reaches %s", expression)
}

const focusFault = `(() => {
	const e = document.activeElement;
	if (!e || e === document.body) return "";
	const box = e.getBoundingClientRect(), style = getComputedStyle(e);
	if (box.width === 0 || box.height === 0) return "invisible: " + e.outerHTML.slice(0, 120);
	if (style.outlineStyle === "none") return "no outline: " + e.outerHTML.slice(0, 120);
	return "";
})()`
