package web

import (
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/waybillhq/waybill/test/browser"
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
