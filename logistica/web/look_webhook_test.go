package web

import (
	"strings"
	"testing"
	"time"

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
	delivered := func(n int) func() bool {
		return func() bool {
			all, err := h.store.Deliveries(t.Context(), "ana", well.ID, webhook.DeliveryFilter{})
			for _, d := range all {
				if d.State == webhook.Pending {
					return false
				}
			}
			return err == nil && len(all) == n
		}
	}
	h.answers(0)
	h.fan("ana", "logistica.orders.OrderCreated", "logistica.orders.OrderStatusChanged", "logistica.orders.OrderStatusChanged", "logistica.orders.OrderCreated")
	until(t, delivered(4))
	h.answers(503)
	h.fan("ana", "logistica.orders.OrderStatusChanged")
	until(t, delivered(5))
	h.answers(0)
	h.fan("ana", "logistica.orders.OrderStatusChanged", "logistica.orders.OrderCreated")
	until(t, delivered(7))
	bad, err := h.store.Create(t.Context(), "ana", webhook.Settings{URL: "http://127.0.0.1:9/" + strings.Repeat("a-long-path/", 9) + "hook", Algorithm: webhook.Ed25519, Ordered: true})
	must(t, err)
	h.fan("ana", "a", "b", "c", "d", "e", "f")
	until(t, func() bool { e, err := h.store.Get(t.Context(), "ana", bad.ID); return err == nil && e.Failures > 0 })
	return well
}

func until(t *testing.T, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not come about")
		}
	}
}

func TestWebhooksFitAndAreReadableInEveryLook(t *testing.T) {
	h := serveHooks(t)
	well := fillHooks(t, h)
	ctx := openHooks(t, h, "")
	for _, v := range views() {
		browser.As(ctx, t, v.look)
		browser.Open(ctx, t, h.url+"/webhooks?"+v.name)
		browser.Until[bool](ctx, t, `document.querySelectorAll(".endpoint .bar-delivered, .endpoint .bar-failed").length >= 5`)
		inspect(ctx, t, v, "hooks-"+v.name)
		browser.Click(ctx, t, "#add")
		window(ctx, t, "hooks-form-"+v.name)
		readable(ctx, t, v, "hooks-form-"+v.name)
		browser.Open(ctx, t, h.url+"/webhooks?one-"+v.name+"#endpoint="+well.ID.String())
		browser.Click(ctx, t, `.delivery[data-state="failed"] .delivery-open`)
		browser.Until[bool](ctx, t, `document.querySelector(".attempt .code") !== null && document.querySelector(".bar-failed") !== null`)
		inspect(ctx, t, v, "hooks-one-"+v.name)
	}
}
