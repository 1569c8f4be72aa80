package web

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/waybillhq/waybill/logistica/orders"
	page "github.com/waybillhq/waybill/test/browser"
)

var phone = page.Look{Width: 390, Height: 844, Locale: "en-US", Zone: "America/Sao_Paulo"}

func openCourier(t *testing.T) (context.Context, *fakeCourier) {
	t.Helper()
	f, url := serve(t)
	ctx := page.New(t)
	page.As(ctx, t, phone)
	page.Open(ctx, t, url+"/courier#key="+courierKey)
	live(ctx, t)
	page.Until[bool](ctx, t, `document.querySelector(".duty") !== null`)
	return ctx, f.courier
}

// stands waits until the page shows the order in a state, with nothing under way.
func stands(ctx context.Context, t *testing.T, state string) {
	t.Helper()
	page.Until[bool](ctx, t, fmt.Sprintf(`document.querySelector('.job[data-state=%q] .chip:not(.is-pending)') !== null`, state))
}

func press(ctx context.Context, t *testing.T, to string) {
	t.Helper()
	page.Click(ctx, t, fmt.Sprintf(`.job button[data-to=%q]`, to))
}

func says(ctx context.Context, t *testing.T, text string) {
	t.Helper()
	page.Until[bool](ctx, t, fmt.Sprintf(`[...document.querySelectorAll("[role=alert]")].some((e) => e.textContent.includes(%q))`, text))
}

func typeCode(ctx context.Context, t *testing.T, code string) {
	t.Helper()
	page.Click(ctx, t, ".code input")
	page.Press(ctx, t, code)
	press(ctx, t, "DELIVERED")
}

func (f *fakeCourier) tookOnly(t *testing.T, want ...string) {
	t.Helper()
	f.with(func() {
		if !slices.Equal(f.taken, want) {
			t.Errorf("steps taken: %v, want %v", f.taken, want)
		}
	})
}

func TestCourierChoosesTheirDutyAndIsBoundByAnOrder(t *testing.T) {
	ctx, f := openCourier(t)
	page.Until[bool](ctx, t, `document.querySelector('[data-duty="OFFLINE"] [data-to="PAUSED"]').disabled`)
	for _, to := range []string{"AVAILABLE", "PAUSED", "AVAILABLE", "OFFLINE"} {
		page.Click(ctx, t, `.duty button[data-to="`+to+`"]`)
		page.Until[bool](ctx, t, `document.querySelector('[data-duty="`+to+`"] [data-to="`+to+`"][aria-pressed="true"]:not([aria-busy])') !== null`)
	}
	f.offer("ASSIGNED")
	page.Until[bool](ctx, t, `document.querySelector('[data-duty="BUSY"]')?.textContent.includes("You have an order") && [...document.querySelectorAll(".duty button")].every((b) => b.disabled)`)
}

func TestDutyChangedElsewhereIsToldAndShown(t *testing.T) {
	ctx, f := openCourier(t)
	page.Allow(ctx, "status of 409")
	page.Click(ctx, t, `.duty button[data-to="AVAILABLE"]`)
	page.Until[bool](ctx, t, `document.querySelector('[data-duty="AVAILABLE"] [aria-pressed="true"]:not([aria-busy])') !== null`)
	f.with(func() { f.state, f.version = "RESERVED", f.version+1 })
	page.Click(ctx, t, `.duty button[data-to="PAUSED"]`)
	page.Until[bool](ctx, t, `document.querySelector('[data-duty="RESERVED"] .note') !== null`)
}

func TestCourierTakesAnOrderFromTheCallToTheDoor(t *testing.T) {
	ctx, f := openCourier(t)
	page.Allow(ctx, "status of 422")
	f.offer("ASSIGNED") // the page hears a call and reads
	stands(ctx, t, "ASSIGNED")
	if title := page.Eval[string](ctx, t, `document.title`); title != "(1) Davi Moreira · Waybill" {
		t.Errorf("title %q while an offer waits", title)
	}
	press(ctx, t, "PICKUP_ONGOING")
	stands(ctx, t, "PICKUP_ONGOING")
	if map1 := page.Eval[string](ctx, t, `document.querySelector("[data-map]").getAttribute("href")`); map1 != "geo:-23.5663,-46.6845?q=-23.5663,-46.6845(Rua%20dos%20Pinheiros%2C%20498)" {
		t.Errorf("on the way to the store the map opens at %s", map1)
	}
	for _, to := range []string{"ARRIVED_AT_MERCHANT", "PICKED_UP", "DELIVERY_ONGOING", "ARRIVED_AT_CUSTOMER"} {
		press(ctx, t, to)
		stands(ctx, t, to)
	}
	if call := page.Eval[string](ctx, t, `document.querySelector("[data-call]").getAttribute("href")`); call != "tel:+5511912345678" {
		t.Errorf("the customer is called by %s", call)
	}
	typeCode(ctx, t, "0000")
	says(ctx, t, "4 tries left")
	typeCode(ctx, t, doorCode)
	page.Until[bool](ctx, t, `document.querySelector(".job") === null && document.querySelector('[data-duty="AVAILABLE"]') !== null`)
	f.tookOnly(t, "PICKUP_ONGOING", "ARRIVED_AT_MERCHANT", "PICKED_UP", "DELIVERY_ONGOING", "ARRIVED_AT_CUSTOMER", "DELIVERED")
}

func TestTooManyWrongCodesSayWhoCanHelp(t *testing.T) {
	ctx, f := openCourier(t)
	page.Allow(ctx, "status of 409")
	page.Allow(ctx, "status of 422")
	f.offer("ARRIVED_AT_CUSTOMER")
	f.with(func() { f.tries = orders.MaxCodeTries - 1 })
	stands(ctx, t, "ARRIVED_AT_CUSTOMER")
	typeCode(ctx, t, "1111")
	says(ctx, t, "Call the store")
	page.Screenshot(ctx, t, "courier-locked")
	f.with(func() { f.tries = 0 }) // the store has reset them
	press(ctx, t, "DELIVERED")
	page.Until[bool](ctx, t, `document.querySelector(".code input") !== null`)
	typeCode(ctx, t, doorCode)
	page.Until[bool](ctx, t, `document.querySelector(".job") === null`)
}

func TestDeclinedOrderIsShownAsSuchUntilItIsGone(t *testing.T) {
	ctx, f := openCourier(t)
	f.offer("ASSIGNED")
	f.with(func() { f.heldBack = true })
	press(ctx, t, "DECLINE")
	page.Until[bool](ctx, t, `document.querySelector("dialog[open]") !== null`)
	page.Press(ctx, t, kb.Escape)
	page.Until[bool](ctx, t, `document.querySelector("dialog") === null`)
	press(ctx, t, "DECLINE")
	page.Click(ctx, t, "dialog [data-yes]")
	page.Until[bool](ctx, t, `document.querySelector('[data-act="declined"]') !== null && document.querySelector(".dock button") === null`)
	f.with(func() { f.job = nil })
	f.call()
	page.Until[bool](ctx, t, `document.querySelector(".job") === null`)
	f.tookOnly(t, "DECLINE")
}

func TestFailedDeliveryTakesAReasonAndTheWayBack(t *testing.T) {
	ctx, f := openCourier(t)
	f.offer("DELIVERY_ONGOING")
	press(ctx, t, "FAILED")
	page.Click(ctx, t, "dialog [data-reason]")
	page.Screenshot(ctx, t, "courier-reason")
	page.Click(ctx, t, "dialog [data-yes]")
	stands(ctx, t, "FAILED")
	press(ctx, t, "RETURNING")
	stands(ctx, t, "RETURNING")
	page.Until[bool](ctx, t, `document.querySelector(".dock .note").textContent.includes("The store confirms") && document.querySelector('[data-place="pickup"] h3').textContent === "Back to the store"`)
	f.tookOnly(t, "FAILED", "RETURNING")
}

func TestStepWithoutNetworkIsTakenOnceWhenItIsBack(t *testing.T) {
	ctx, f := openCourier(t)
	page.Allow(ctx, "net::ERR")
	f.offer("ASSIGNED")
	stands(ctx, t, "ASSIGNED")
	f.with(func() { f.away = true })
	press(ctx, t, "PICKUP_ONGOING")
	page.Until[bool](ctx, t, `document.querySelector('[data-act="waiting"]') !== null && document.querySelector("[data-offline]")?.textContent.includes("What you see is from")`)
	page.Screenshot(ctx, t, "courier-offline")
	f.with(func() { f.away = false })
	stands(ctx, t, "PICKUP_ONGOING")
	page.Until[bool](ctx, t, `document.querySelector("[data-offline]") === null`)
	f.tookOnly(t, "PICKUP_ONGOING")
}

func TestStepWhoseAnswerWasLostIsNotTakenAgain(t *testing.T) {
	ctx, f := openCourier(t)
	page.Allow(ctx, "net::ERR")
	page.Allow(ctx, "status of 40") // where the browser itself sends it again, on another connection
	f.offer("PICKED_UP")
	stands(ctx, t, "PICKED_UP")
	f.with(func() { f.loseAnswers = 1 })
	press(ctx, t, "DELIVERY_ONGOING")
	stands(ctx, t, "DELIVERY_ONGOING")
	f.with(func() { f.loseAnswers = 1 })
	press(ctx, t, "ARRIVED_AT_CUSTOMER")
	stands(ctx, t, "ARRIVED_AT_CUSTOMER")
	f.with(func() { f.loseAnswers = 1 })
	typeCode(ctx, t, doorCode)
	page.Until[bool](ctx, t, `document.querySelector(".job") === null`)
	f.tookOnly(t, "DELIVERY_ONGOING", "ARRIVED_AT_CUSTOMER", "DELIVERED")
}

func TestStepThatTheMerchantOvertookIsRefusedAndTheOrderShownAnew(t *testing.T) {
	ctx, f := openCourier(t)
	page.Allow(ctx, "status of 409")
	f.offer("PICKUP_ONGOING")
	stands(ctx, t, "PICKUP_ONGOING")
	f.with(func() { f.stand("ARRIVED_AT_MERCHANT"); f.stand("PICKED_UP") }) // by a phone call
	press(ctx, t, "ARRIVED_AT_MERCHANT")
	says(ctx, t, "has changed meanwhile")
	stands(ctx, t, "PICKED_UP")
	f.tookOnly(t)
}

func TestCancelledOrderLeavesThePage(t *testing.T) {
	ctx, f := openCourier(t)
	page.Allow(ctx, "status of 404")
	f.offer("ASSIGNED")
	stands(ctx, t, "ASSIGNED")
	f.with(func() { f.stand("CANCELLED") }) // and nobody has called yet
	press(ctx, t, "PICKUP_ONGOING")
	says(ctx, t, "no longer yours")
	page.Until[bool](ctx, t, `document.querySelector(".job") === null`)
}

func TestKeyThatIsNoCouriersOpensNothing(t *testing.T) {
	_, url := serve(t)
	ctx := page.New(t)
	page.Allow(ctx, "status of 40")
	for key, want := range map[string]string{testKey: "not a courier", "wb_other": "not known"} {
		page.Open(ctx, t, url+"/courier?"+key+"#key="+key)
		says(ctx, t, want)
		if shown := page.Eval[bool](ctx, t, `document.querySelector(".duty, .job") !== null`); shown {
			t.Errorf("%s: opens the page", key)
		}
	}
}

func TestPositionIsSharedOnlyOnDutyAndWithConsent(t *testing.T) {
	ctx, f := openCourier(t)
	locate(ctx, t, browser.PermissionSettingGranted)
	page.Until[bool](ctx, t, `document.querySelector('[data-share="off"]') !== null`)
	page.Click(ctx, t, ".toggle")
	page.Until[bool](ctx, t, `document.querySelector('[data-share="resting"]') !== null`)
	f.with(func() {
		if len(f.positions) != 0 {
			t.Errorf("%d positions of somebody off duty", len(f.positions))
		}
	})
	page.Click(ctx, t, `.duty button[data-to="AVAILABLE"]`)
	page.Until[bool](ctx, t, `document.querySelector('[data-share="shared"]') !== null`)
	f.with(func() {
		if len(f.positions) == 0 || f.positions[0]["lat"] != -23.56 || f.positions[0]["accuracy_m"] != 12.0 {
			t.Errorf("positions: %v", f.positions)
		}
	})
	page.Click(ctx, t, ".toggle")
	page.Until[bool](ctx, t, `document.querySelector('[data-share="off"]') !== null`)
}

func TestWithoutPermissionThePageSaysSoAndWorks(t *testing.T) {
	ctx, f := openCourier(t)
	locate(ctx, t, browser.PermissionSettingDenied)
	page.Click(ctx, t, ".toggle")
	page.Click(ctx, t, `.duty button[data-to="AVAILABLE"]`)
	page.Until[bool](ctx, t, `document.querySelector('[data-share="denied"]')?.textContent.includes("You can work without it")`)
	page.Screenshot(ctx, t, "courier-denied")
	f.offer("ASSIGNED")
	press(ctx, t, "PICKUP_ONGOING")
	stands(ctx, t, "PICKUP_ONGOING")
}

// locate puts the device in São Paulo, and says what it lets pages know of that.
func locate(ctx context.Context, t *testing.T, setting browser.PermissionSetting) {
	t.Helper()
	lat, lng, accuracy := -23.56, -46.68, 12.0
	page.Do(ctx, t, chromedp.Func(func(ctx context.Context, tg *chromedp.Target) error {
		if _, err := cdp.Call(ctx, tg, browser.SetPermission, browser.SetPermissionParams{
			Permission: &browser.PermissionDescriptor{Name: "geolocation"}, Setting: setting,
		}); err != nil {
			return err
		}
		_, err := cdp.Call(ctx, tg, emulation.SetGeolocationOverride, emulation.SetGeolocationOverrideParams{
			Latitude: &lat, Longitude: &lng, Accuracy: &accuracy,
		})
		return err
	}))
}
