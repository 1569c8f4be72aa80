package web

import (
	"context"
	"testing"

	"github.com/waybillhq/waybill/test/browser"
)

func openTrack(t *testing.T) (context.Context, *fake) {
	t.Helper()
	f, url := serve(t)
	f.with(func() { f.make("k", map[string]any{"items": feast}) })
	ctx := browser.New(t)
	browser.As(ctx, t, browser.Look{Width: 390, Height: 844, Locale: "en-US", Zone: "America/Sao_Paulo"})
	browser.Open(ctx, t, url+"/track/tok1")
	live(ctx, t)
	browser.Until[bool](ctx, t, `document.querySelector('#now[data-state="CREATED"]') !== null`)
	return ctx, f
}

const firstOrder = "01940000-0000-7000-8000-000000000001"

var feast = []any{
	map[string]any{"name": "Feijoada para dois", "quantity": 1.0, "unit_price": 9890.0},
	map[string]any{"name": "Couve refogada", "quantity": 2.0, "unit_price": 1590.0},
}

func TestTrackingPageFollowsEveryStepToTheEnd(t *testing.T) {
	ctx, f := openTrack(t)
	for _, to := range []string{"ASSIGNING", "ASSIGNED", "PICKUP_ONGOING", "ARRIVED_AT_MERCHANT", "PICKED_UP", "DELIVERY_ONGOING", "ARRIVED_AT_CUSTOMER", "DELIVERED"} {
		f.with(func() { f.move(f.orders[firstOrder], to) })
		browser.Until[bool](ctx, t, `document.querySelector('#now[data-state="`+to+`"]') !== null && document.querySelector('[data-step="`+to+`"] time') !== null`)
	}
	browser.Until[bool](ctx, t, `document.querySelector(".conn-ended") !== null && document.querySelectorAll(".timeline li").length === 9`)
}

func TestSearchBegunAnewShowsNoStepTwice(t *testing.T) {
	ctx, f := openTrack(t)
	for _, to := range []string{"ASSIGNING", "CREATED", "ASSIGNING"} {
		f.with(func() { f.move(f.orders[firstOrder], to) })
		browser.Until[bool](ctx, t, `document.querySelector('#now[data-state="`+to+`"]') !== null`)
	}
	browser.Until[bool](ctx, t, `document.querySelectorAll(".timeline li").length === 9 && document.querySelector('[data-step="ASSIGNING"].is-now') !== null`)
}

func TestCancelledOrderPromisesNoFurtherStep(t *testing.T) {
	ctx, f := openTrack(t)
	f.with(func() { f.move(f.orders[firstOrder], "CANCELLED") })
	browser.Until[bool](ctx, t, `document.querySelector('#now[data-state="CANCELLED"]') !== null && document.querySelector(".is-ahead") === null`)
}

func TestUnknownLinkSaysSo(t *testing.T) {
	_, url := serve(t)
	ctx := browser.New(t)
	browser.Allow(ctx, "status of 404")
	browser.As(ctx, t, browser.Look{Width: 390, Height: 844, Locale: "pt-BR"})
	browser.Open(ctx, t, url+"/track/nothing")
	browser.Until[bool](ctx, t, `document.querySelector("h1")?.textContent === "Este link não leva a nenhum pedido"`)
	browser.Screenshot(ctx, t, "track-unknown")
	browser.Until[bool](ctx, t, `document.documentElement.lang === "pt-BR"`)
}
