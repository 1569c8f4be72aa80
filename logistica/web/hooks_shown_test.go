package web

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/waybillhq/waybill/test/browser"
	"github.com/waybillhq/waybill/webhook/server"
)

// The stand-in's operator allows plain http to this machine, as one with
// WAYBILL_WEBHOOK_ALLOW does.
func TestWhatIsSaidOfAnAddressHoldsWhereTheOperatorAllowsMore(t *testing.T) {
	h := serveHooks(t)
	ctx := openHooks(t, h, "")
	for language, want := range map[string]string{"en": "unless the operator allows more", "pt": "a não ser que o operador permita mais"} {
		browser.Click(ctx, t, `[lang^="`+language+`"][aria-pressed]`)
		browser.Click(ctx, t, "#add")
		browser.Until[bool](ctx, t, `document.querySelector("dialog .field small")?.textContent.includes("`+want+`")`)
		browser.Press(ctx, t, kb.Escape)
		browser.Until[bool](ctx, t, `document.querySelector("dialog") === null`)
	}
	browser.Click(ctx, t, "#add")
	fill(ctx, t, `[name="url"]`, h.receiver+kb.Enter)
	browser.Until[bool](ctx, t, `document.querySelector("[data-secret]") !== null`)
}

func TestWhatIsSaidOfALostSecretIsTrue(t *testing.T) {
	h := serveHooks(t)
	ctx := openHooks(t, h, "")
	browser.Click(ctx, t, "#add")
	fill(ctx, t, `[name="url"]`, h.receiver+kb.Enter)
	secret := browser.Until[string](ctx, t, `document.querySelector("[data-secret]")?.textContent`)
	said := browser.Eval[string](ctx, t, `document.querySelector("dialog .muted").textContent`)
	if !strings.Contains(said, "This page shows it once") || !strings.Contains(said, "the API still gives it") {
		t.Error(said)
	}
	all, err := h.store.List(t.Context(), "ana")
	must(t, err)
	path := server.Prefix + "/endpoints/" + all[0].ID.String() + "/secrets"
	given := browser.Eval[string](ctx, t, `fetch("`+path+`", { headers: { Authorization: "Bearer `+testKey+`" } }).then((r) => r.json()).then((b) => b.secrets[0].key)`)
	if given != secret {
		t.Errorf("the API gives %q", given)
	}
}

func TestAChoiceByWhichNothingComesIsWarnedOf(t *testing.T) {
	h := serveHooks(t)
	h.create("ana", "all well", "logistica.orders.>")
	ctx := openHooks(t, h, "")
	browser.Click(ctx, t, "#add")
	fill(ctx, t, `[name="types"]`, "order.created")
	browser.Until[bool](ctx, t, `document.querySelector("dialog [role=status] [data-deaf]")?.textContent.startsWith("order.created matches no known event: the endpoint will receive nothing")`)
	browser.Screenshot(ctx, t, "hooks-deaf-form")
	browser.Click(ctx, t, `input[value="logistica.orders.OrderCreated"]`)
	browser.Until[bool](ctx, t, `document.querySelector("dialog [data-deaf]")?.textContent === "order.created matches no known event: nothing comes by it."`)
	browser.Click(ctx, t, `input[value="logistica.orders.OrderCreated"]`)
	fill(ctx, t, `[name="url"]`, h.receiver)
	browser.Click(ctx, t, "[data-save]")
	browser.Click(ctx, t, "[data-done]")
	browser.Until[bool](ctx, t, `document.querySelector(".head [data-deaf]") !== null`)
	browser.Click(ctx, t, ".back")
	browser.Until[bool](ctx, t, `document.querySelectorAll(".endpoint").length === 2 && document.querySelectorAll(".endpoint [data-deaf]").length === 1`)
	browser.Screenshot(ctx, t, "hooks-deaf-list")
}

func TestWhatWaitsForAnEndpointLeftAloneSaysWhenItIsCalledAgain(t *testing.T) {
	h := serveHooks(t)
	e := h.create("ana", "Our kitchen")
	h.answers(500)
	open := func() bool {
		got, err := h.store.Get(t.Context(), "ana", e.ID)
		return err == nil && got.OpenUntil != nil
	}
	until(t, func() bool {
		h.fan("ana", "logistica.orders.OrderCreated")
		return open()
	})
	h.fan("ana", strings.Fields(strings.Repeat("logistica.orders.OrderDelivered ", 10))...) // one is tried each time it is called again: some wait for minutes
	ctx := openHooks(t, h, "#endpoint="+e.ID.String())
	browser.Until[bool](ctx, t, `/next attempt .*\d:\d/.test(document.querySelector('.head[data-state="open"] ~ .log .delivery[data-state="pending"] .delivery-sum')?.textContent)`)
	browser.Screenshot(ctx, t, "hooks-open")
}
