package web

import (
	"context"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/waybillhq/waybill/test/browser"
	"github.com/waybillhq/waybill/webhook"
)

func fill(ctx context.Context, t *testing.T, selector, text string) {
	t.Helper()
	browser.Click(ctx, t, selector)
	browser.Do(ctx, t, chromedp.KeyEvent(text))
}

func TestEndpointFromTheEmptyPageToAResentDelivery(t *testing.T) {
	h := serveHooks(t)
	ctx := openHooks(t, h, "")
	browser.Screenshot(ctx, t, "hooks-empty")
	browser.Click(ctx, t, "#add")
	fill(ctx, t, `[name="url"]`, h.receiver)
	fill(ctx, t, `[name="description"]`, "Our kitchen")
	browser.Click(ctx, t, `input[value="logistica.orders.OrderCreated"]`)
	browser.Screenshot(ctx, t, "hooks-form")
	browser.Click(ctx, t, "[data-save]")
	secret := browser.Until[string](ctx, t, `document.querySelector("[data-secret]")?.textContent`)
	window(ctx, t, "hooks-secret")
	browser.Click(ctx, t, "[data-done]")
	browser.Until[bool](ctx, t, `document.querySelector("dialog") === null && document.activeElement.id === "endpoint-title"`)
	if shown := browser.Eval[bool](ctx, t, `document.documentElement.outerHTML.includes("`+secret+`")`); shown || !strings.HasPrefix(secret, "whsec_") {
		t.Error("the secret is not shown once")
	}

	browser.Click(ctx, t, `[data-do="ping"]`)
	browser.Until[bool](ctx, t, `/delivered: 200 in/.test(document.querySelector("[data-ping]").textContent)`)
	must(t, h.verified(secret))
	browser.Until[bool](ctx, t, `document.querySelector('.delivery[data-state="delivered"]') !== null`)

	h.answers(500)
	id := h.fan("ana", "logistica.orders.OrderCreated", "logistica.orders.OrderDelivered")[0].String()
	row := `[data-event="` + id + `"]`
	until(t, func() bool {
		recent, err := h.store.Recent(t.Context(), "ana")
		return err == nil && len(recent) == 2 && recent[0].State == webhook.Failed
	})
	lookAgain(ctx, t)
	browser.Until[bool](ctx, t, `document.querySelector('`+row+`[data-state="failed"]') !== null && document.querySelectorAll(".delivery").length === 2`)
	browser.Click(ctx, t, row+" .delivery-open")
	browser.Until[bool](ctx, t, `document.querySelector('`+row+` .attempt[data-status="500"]')?.textContent.includes("the receiver's own words")`)
	browser.Click(ctx, t, row+" [data-body]")
	browser.Until[bool](ctx, t, `document.querySelector('`+row+` [data-body] + pre')?.textContent.includes('"order": 0')`)
	browser.Screenshot(ctx, t, "hooks-attempts")
	h.answers(0)
	browser.Click(ctx, t, row+" [data-resend]")
	browser.Until[bool](ctx, t, `document.querySelector('`+row+`[data-state="delivered"] .attempt:nth-child(2)[data-status="200"]') !== null && /Delivered: 200/.test(document.querySelector("#said").textContent)`)
}

func TestWhatIsReadDoesNotMove(t *testing.T) {
	h := serveHooks(t)
	e := h.create("ana", "")
	first := h.fan("ana", "a")[0].String()
	ctx := openHooks(t, h, "#endpoint="+e.ID.String())
	browser.Click(ctx, t, `[data-event="`+first+`"] .delivery-open`)
	h.fan("ana", "b", "c")
	lookAgain(ctx, t)
	browser.Until[bool](ctx, t, `document.querySelector(".fresh")?.textContent.startsWith("2 new")`)
	if n := browser.Eval[int](ctx, t, `document.querySelectorAll(".delivery").length`); n != 1 {
		t.Errorf("%d deliveries while one is read", n)
	}
	browser.Click(ctx, t, ".fresh")
	browser.Until[bool](ctx, t, `document.querySelectorAll(".delivery").length === 3 && document.querySelector(".delivery.is-open").dataset.event === "`+first+`"`)
	browser.Click(ctx, t, `[data-filter="failed"]`)
	browser.Until[bool](ctx, t, `document.querySelector(".deliveries").children.length === 0 && document.querySelector(".log").textContent.includes("No delivery is in this state")`)
}

func TestEarlierDeliveriesAreLoadedByThePage(t *testing.T) {
	h := serveHooks(t)
	e := h.create("ana", "")
	types := strings.Fields(strings.Repeat("a ", 60))
	h.fan("ana", types...)
	ctx := openHooks(t, h, "#endpoint="+e.ID.String())
	browser.Until[bool](ctx, t, `document.querySelectorAll(".delivery").length === 50`)
	browser.Click(ctx, t, ".more")
	browser.Until[bool](ctx, t, `document.querySelectorAll(".delivery").length === 60 && document.querySelector(".more") === null && document.activeElement.matches(".delivery:nth-child(51) .delivery-open") && new Set([...document.querySelectorAll(".delivery")].map((d) => d.dataset.event)).size === 60`)
}

func TestEndpointThatFailedIsEnabledAndItsFailedAreSentAgain(t *testing.T) {
	h := serveHooks(t)
	e := h.create("ana", "Our kitchen")
	h.answers(410)
	h.fan("ana", "logistica.orders.OrderCreated")
	h.settled("ana", e.ID)
	ctx := openHooks(t, h, "")
	browser.Until[bool](ctx, t, `document.querySelector('.endpoint[data-state="disabled"]')?.textContent.includes("It answered 410 Gone")`)
	browser.Click(ctx, t, ".endpoint a")
	browser.Until[bool](ctx, t, `document.querySelector('[data-do="ping"].cannot') !== null && document.querySelector("#replay-failed.cannot") !== null`)
	h.answers(0)
	browser.Click(ctx, t, `[data-do="enable"]`)
	browser.Click(ctx, t, "#replay-failed:not(.cannot)")
	browser.Until[bool](ctx, t, `document.querySelector("dialog h2")?.textContent === "Resend 1 failed delivery?"`)
	window(ctx, t, "hooks-replay")
	browser.Click(ctx, t, "[data-yes]")
	until(t, func() bool {
		all, err := h.store.Deliveries(t.Context(), "ana", e.ID, webhook.DeliveryFilter{State: webhook.Delivered})
		return err == nil && len(all) == 1
	})
	lookAgain(ctx, t)
	browser.Until[bool](ctx, t, `document.querySelector('.delivery[data-state="delivered"]') !== null && document.querySelector("[data-failed]").textContent === "0"`)
	browser.Until[bool](ctx, t, `document.querySelector("dialog") === null && document.activeElement.matches("#replay-failed.cannot")`) // the focus is not lost with what can no longer be done
	browser.Click(ctx, t, "#replay-since")
	browser.Click(ctx, t, "[data-yes]")
	browser.Until[bool](ctx, t, `document.querySelector("#said").textContent.startsWith("1 delivery is on its way")`)

	browser.Click(ctx, t, `[data-do="rotate"]`)
	browser.Click(ctx, t, "[data-yes]")
	browser.Until[bool](ctx, t, `/signs too until .* GMT-3/.test(document.querySelector("[data-overlap]")?.textContent)`)
	browser.Press(ctx, t, kb.Escape)
	browser.Click(ctx, t, `[data-do="disable"]`)
	fill(ctx, t, "dialog input", "on holiday")
	browser.Click(ctx, t, "[data-yes]")
	browser.Until[bool](ctx, t, `document.querySelector('[data-state="disabled"] [data-why]')?.textContent.includes("Reason: on holiday.")`)
	browser.Click(ctx, t, `[data-do="delete"]`)
	browser.Until[bool](ctx, t, `document.querySelector("dialog")?.textContent.includes("cannot be undone")`)
	browser.Press(ctx, t, kb.Escape)
	browser.Until[bool](ctx, t, `document.querySelector("dialog") === null && document.activeElement.dataset.do === "delete"`)
	browser.Click(ctx, t, `[data-do="delete"]`)
	browser.Click(ctx, t, "[data-yes]")
	browser.Until[bool](ctx, t, `document.querySelector(".hook-empty") !== null`)
	if _, err := h.store.Get(t.Context(), "ana", e.ID); err == nil {
		t.Error("the endpoint is still there")
	}
}

func TestWhatTheServerRefusesIsSaidAtItsField(t *testing.T) {
	h := serveHooks(t)
	h.create("ana", "", "logistica.orders.OrderCreated", "couriers.>")
	ctx := openHooks(t, h, "")
	browser.Allow(ctx, "status of 422")
	browser.Click(ctx, t, "#add")
	fill(ctx, t, `[name="url"]`, "nonsense"+kb.Enter)
	browser.Until[bool](ctx, t, `document.querySelector('[data-bad="url"]')?.textContent.startsWith("Write a whole address") && document.activeElement.name === "url"`)
	fill(ctx, t, `[name="url"]`, kb.End+strings.Repeat(kb.Backspace, len("nonsense"))+"https://10.0.0.1/hook"+kb.Enter)
	browser.Until[bool](ctx, t, `document.querySelector('[data-bad="url"]')?.textContent.includes("Give a public address")`)
	browser.Screenshot(ctx, t, "hooks-refused")
	browser.Press(ctx, t, kb.Escape)
	browser.Until[bool](ctx, t, `document.querySelector("dialog") === null && document.activeElement.id === "add"`)
	browser.Click(ctx, t, ".endpoint a")
	browser.Click(ctx, t, `[data-do="edit"]`)
	fill(ctx, t, `[name="types"]`, kb.End+" a..b"+kb.Enter)
	browser.Until[bool](ctx, t, `document.querySelector('[data-bad="types"]')?.textContent.includes("Words between dots") && document.activeElement.name === "types"`)
	fill(ctx, t, `[name="types"]`, kb.End+strings.Repeat(kb.Backspace, 3)+".b"+kb.Enter)
	browser.Until[bool](ctx, t, `document.querySelector("dialog") === null && /couriers.>.*a.b/.test(document.querySelector(".wants").textContent)`)
}

func TestWebhooksAreWorkedByKeyboard(t *testing.T) {
	h := serveHooks(t)
	ctx := openHooks(t, h, "")
	tabTo(ctx, t, `document.activeElement.id === "add"`)
	browser.Press(ctx, t, kb.Enter)
	browser.Until[bool](ctx, t, `document.activeElement.name === "url"`)
	browser.Press(ctx, t, h.receiver)
	for range 20 { // the focus stays within the dialog, or at the browser's own parts
		browser.Press(ctx, t, kb.Tab)
		if !browser.Eval[bool](ctx, t, `document.activeElement === document.body || document.activeElement.closest("dialog") !== null`) {
			t.Fatal("the focus leaves the dialog")
		}
	}
	tabTo(ctx, t, `document.activeElement.matches("[data-save]")`)
	browser.Press(ctx, t, kb.Enter)
	browser.Until[bool](ctx, t, `document.querySelector("[data-secret]") !== null`)
	tabTo(ctx, t, `document.activeElement.matches("[data-done]")`)
	browser.Press(ctx, t, kb.Enter)
	browser.Until[bool](ctx, t, `document.activeElement.id === "endpoint-title"`)
	tabTo(ctx, t, `document.activeElement.dataset.do === "ping"`)
	browser.Press(ctx, t, kb.Enter)
	browser.Until[bool](ctx, t, `/delivered: 200/.test(document.querySelector("[data-ping]").textContent) && document.activeElement.dataset.do === "ping"`)
	tabTo(ctx, t, `document.activeElement.matches(".delivery-open")`)
	browser.Press(ctx, t, kb.Enter)
	browser.Until[bool](ctx, t, `document.querySelector(".delivery-open").getAttribute("aria-expanded") === "true"`)
	read := browser.Eval[string](ctx, t, `document.querySelector("[data-read]").dataset.read`)
	lookAgain(ctx, t)
	browser.Until[bool](ctx, t, `document.querySelector("[data-read]").dataset.read !== "`+read+`" && document.activeElement.matches(".delivery-open")`) // read again, and the focus has stayed
	tabTo(ctx, t, `document.activeElement.matches("[data-resend]")`)
	browser.Press(ctx, t, kb.Enter)
	browser.Until[bool](ctx, t, `document.querySelectorAll(".attempt").length === 2 && document.activeElement.matches("[data-resend]")`)
	browser.Eval[bool](ctx, t, `history.back(), true`)
	browser.Until[bool](ctx, t, `document.activeElement.matches(".endpoint a")`)
	browser.Press(ctx, t, kb.Enter)
	browser.Until[bool](ctx, t, `document.activeElement.id === "endpoint-title"`)
}

func TestEndpointsOfAnotherStoreNeverAppear(t *testing.T) {
	h := serveHooks(t)
	theirs := h.create("rui", "Somebody else's")
	h.create("ana", "Our kitchen")
	ctx := openHooks(t, h, "")
	browser.Until[bool](ctx, t, `document.querySelectorAll(".endpoint").length === 1 && document.querySelector(".endpoint").textContent.includes("Our kitchen")`)
	browser.Eval[bool](ctx, t, `location.hash = "endpoint=`+theirs.ID.String()+`", true`)
	browser.Until[bool](ctx, t, `document.querySelector(".hook-gone")?.textContent.includes("not there")`)
	browser.Eval[bool](ctx, t, `location.hash = "key=`+otherKey+`", true`)
	browser.Until[bool](ctx, t, `document.querySelector(".endpoint")?.textContent.includes("Somebody else's") && document.querySelector(".store").textContent === "Cantina da rui"`)
	if browser.Eval[bool](ctx, t, `document.body.textContent.includes("Our kitchen") || location.href.includes("`+otherKey+`")`) {
		t.Error("the one store's endpoints, or the key, are still to be seen")
	}
}

func TestKeyThatIsNotAStoresOpensNoWebhooks(t *testing.T) {
	_, url := serve(t)
	ctx := browser.New(t)
	browser.Allow(ctx, "status of 403")
	browser.Allow(ctx, "status of 401")
	browser.Open(ctx, t, url+"/webhooks#key="+courierKey)
	browser.Until[bool](ctx, t, `document.querySelector("[role=alert]")?.textContent.includes("not a store's")`)
	browser.Do(ctx, t, chromedp.SendKeys(chromedp.CSS("input"), "wb_wrong"+kb.Enter))
	browser.Until[bool](ctx, t, `document.querySelector("[role=alert]")?.textContent.includes("not known")`)
}
