package web

import (
	"strings"
	"testing"

	"github.com/waybillhq/waybill/test/browser"
	"github.com/waybillhq/waybill/webhook"
)

// fillHooks makes endpoints of each kind: one that does well but for an event,
// one that fails, one that wants no more.
func fillHooks(t *testing.T, h *hooks) (well webhook.Endpoint) {
	t.Helper()
	gone := h.create("ana", "Old shop", "logistica.orders.>")
	h.answers(410)
	h.fan("ana", "logistica.orders.OrderCreated")
	until(t, func() bool {
		e, err := h.store.Get(t.Context(), "ana", gone.ID)
		return err == nil && e.State == webhook.Disabled
	})
	well = h.create("ana", "Kitchen display", "logistica.orders.OrderCreated", "logistica.orders.OrderStatusChanged", "couriers.*.assigned")
	for _, step := range []struct {
		answer int
		types  []string
	}{
		{0, []string{"logistica.orders.OrderCreated", "logistica.orders.OrderStatusChanged", "logistica.orders.OrderStatusChanged"}},
		{503, []string{"logistica.orders.OrderStatusChanged"}},
		{0, []string{"logistica.orders.OrderStatusChanged", "logistica.orders.OrderCreated"}},
	} {
		h.answers(step.answer)
		h.fan("ana", step.types...)
		h.settled("ana", well.ID)
	}
	bad, err := h.store.Create(t.Context(), "ana", webhook.Settings{URL: "http://127.0.0.1:9/" + strings.Repeat("a-long-path/", 9) + "hook", Algorithm: webhook.Ed25519, Ordered: true})
	must(t, err)
	h.fan("ana", "a", "b", "c", "d", "e", "f")
	until(t, func() bool { e, err := h.store.Get(t.Context(), "ana", bad.ID); return err == nil && e.Failures > 0 })
	return well
}

func TestWebhooksFitAndAreReadableInEveryLook(t *testing.T) {
	h := serveHooks(t)
	well := fillHooks(t, h)
	ctx := openHooks(t, h, "")
	for n, v := range views() {
		if n%3 != 0 { // one of three has each size, scheme and language
			continue
		}
		browser.As(ctx, t, v.look)
		browser.Open(ctx, t, h.url+"/webhooks?"+v.name)
		browser.Until[bool](ctx, t, `document.querySelectorAll(".endpoint .bar-delivered, .endpoint .bar-failed").length >= 5`)
		inspect(ctx, t, v, "hooks-"+v.name)
		browser.Click(ctx, t, "#add")
		window(ctx, t, "hooks-form-"+v.name)
		readable(ctx, t, v, "hooks-form-"+v.name)
		browser.Open(ctx, t, h.url+"/webhooks?one-"+v.name+"#endpoint="+well.ID.String())
		browser.Click(ctx, t, "#verify")
		browser.Click(ctx, t, `.delivery[data-state="failed"] .delivery-open`)
		browser.Until[bool](ctx, t, `document.querySelector(".attempt .code") !== null && document.querySelector(".bar-failed") !== null`)
		inspect(ctx, t, v, "hooks-one-"+v.name)
	}
}
