package web

import (
	"fmt"
	"testing"
	"time"

	"github.com/waybillhq/waybill/test/browser"
)

func TestNothingLateOfWhatWasPromisedIsDrawnAsZero(t *testing.T) {
	b := newFiguresBed(t)
	bakery, key := b.merchant("Padaria São João")
	_, admin := b.merchant("")
	b.delivered(bakery, b.now.Add(-20*time.Minute), false)
	ctx := browser.New(t)
	for n, c := range []struct{ key, locale, tile, row string }{
		{key, "en-US", "0%", "0% (0 of 1)"},
		{key, "pt-BR", "0%", "0% (0 de 1)"},
		{admin, "en-US", "0%", "0% (0 of 1)"},
		{admin, "pt-BR", "0%", "0% (0 de 1)"},
	} {
		browser.As(ctx, t, browser.Look{Width: 1280, Height: 860, Locale: c.locale, Zone: "America/Sao_Paulo"})
		browser.Open(ctx, t, fmt.Sprintf("%s/analytics?%d#key=%s", b.url, n, c.key))
		browser.Until[bool](ctx, t, fmt.Sprintf(`document.querySelector("#tile-late dd")?.textContent === %q`, c.tile))
		browser.Until[bool](ctx, t, fmt.Sprintf(`document.querySelectorAll("#late .bar").length === 1 && document.querySelector("#late tbody td")?.textContent === %q`, c.row))
	}
}

func TestOnlyAMerchantIsLedFromTheFiguresToTheDesk(t *testing.T) {
	b := newFiguresBed(t)
	_, key := b.merchant("Padaria São João")
	_, admin := b.merchant("")
	ctx := browser.New(t)
	for n, c := range []struct {
		key  string
		desk bool
	}{{key, true}, {admin, false}} {
		browser.Open(ctx, t, fmt.Sprintf("%s/analytics?%d#key=%s", b.url, n, c.key))
		browser.Until[bool](ctx, t, `document.querySelector("main")?.dataset.read > 0`)
		if led := browser.Eval[bool](ctx, t, `document.querySelector('.top a[href="/"]') !== null`); led != c.desk {
			t.Errorf("key %d: a link to the desk is shown: %v", n, led)
		}
	}
}
