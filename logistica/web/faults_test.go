package web

import (
	"context"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/waybillhq/waybill/test/browser"
)

func openFaults(t *testing.T) (context.Context, *fakeFaults) {
	t.Helper()
	f, url := serve(t)
	ctx := browser.New(t)
	browser.As(ctx, t, browser.Look{Width: 1280, Height: 860, Locale: "en-US", Zone: "America/Sao_Paulo"})
	browser.Open(ctx, t, url+"/#key="+testKey)
	browser.Until[bool](ctx, t, `document.querySelector("#faults")?.getAttribute("href") === "/faults"`)
	browser.Open(ctx, t, url+"/faults") // as the desk's link does: the tab has the key
	browser.Until[bool](ctx, t, `document.querySelectorAll("[data-fault]").length === 7`)
	return ctx, f.faults
}

func TestFaultIsSetShownWithItsSetterAndCleared(t *testing.T) {
	ctx, f := openFaults(t)
	browser.Click(ctx, t, `[data-fault="billing-failure"] [data-set]`)
	browser.Until[bool](ctx, t, `/30.*until.*since.*by API key of Cantina/.test(document.querySelector('[data-fault="billing-failure"][data-value="30"] .fault-on')?.textContent)`)
	browser.Click(ctx, t, `[data-fault="broker-down"] [data-set]`)
	browser.Until[bool](ctx, t, `document.querySelector("#count").dataset.on === "2"`)
	browser.Screenshot(ctx, t, "faults-set")
	browser.Click(ctx, t, `[data-fault="billing-failure"] [data-clear]`)
	browser.Until[bool](ctx, t, `document.querySelector("#count").dataset.on === "1" && document.querySelector("#said").textContent === "billing-failure is cleared"`)
	f.with(func() { f.set["webhook-500"] = map[string]any{"value": 10, "set_by": "somebody else"} })
	browser.Until[bool](ctx, t, `document.querySelector("#count").dataset.on === "2"`) // read again by itself
	browser.Click(ctx, t, "#clear-all")
	browser.Until[bool](ctx, t, `document.querySelector("#count").dataset.on === "0" && document.querySelector("#clear-all").disabled`)
	f.with(func() {
		if len(f.set) != 0 {
			t.Errorf("left: %v", f.set)
		}
	})
}

func TestFaultsAreWorkedByKeyboard(t *testing.T) {
	ctx, f := openFaults(t)
	tabTo(ctx, t, `document.activeElement.type === "range" && document.activeElement.closest('[data-fault="slow-consumer"]') !== null`)
	browser.Press(ctx, t, kb.ArrowRight)
	tabTo(ctx, t, `document.activeElement.matches("[data-set]")`)
	browser.Press(ctx, t, kb.Enter)
	browser.Until[bool](ctx, t, `document.querySelector('[data-fault="slow-consumer"][data-value="550"]') !== null`)
	f.with(func() {
		if f.set["slow-consumer"]["until"] == nil {
			t.Error("set without the end that the panel offers")
		}
	})
	tabTo(ctx, t, `document.activeElement.matches("[data-clear]")`)
	browser.Press(ctx, t, kb.Enter)
	browser.Until[bool](ctx, t, `document.querySelector('[data-fault="slow-consumer"][data-value="0"]') !== null`)
}

func TestRefusedFaultSaysWhatTheApiSaid(t *testing.T) {
	ctx, f := openFaults(t)
	browser.Allow(ctx, "status of 422")
	f.with(func() { f.refuse = true })
	browser.Click(ctx, t, `[data-fault="slow-consumer"] [data-set]`)
	browser.Until[bool](ctx, t, `document.querySelector('[data-fault="slow-consumer"] [role=alert]')?.textContent.includes("takes 0 to 5000")`)
}

func TestKeyThatMaySetNoFaultsOpensNoPanel(t *testing.T) {
	_, url := serve(t)
	ctx := browser.New(t)
	browser.Allow(ctx, "status of 403")
	browser.Open(ctx, t, url+"/faults#key=wb_other")
	browser.Until[bool](ctx, t, `document.querySelector("[role=alert]")?.textContent.includes("may not set faults")`)
}
