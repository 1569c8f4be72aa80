package web

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/waybillhq/waybill/logistica/orders"
	"github.com/waybillhq/waybill/test/browser"
)

// doors are where the day's orders go.
var doors = []map[string]any{
	{"street": "Rua Harmonia", "number": "271", "district": "Vila Madalena", "cep": "05435-000", "lat": -23.5546, "lng": -46.6908, "reference": "Portaria azul"},
	{"street": "Rua Vergueiro", "number": "2253", "district": "Vila Mariana", "cep": "04101-100", "lat": -23.5795, "lng": -46.6402},
	{"street": "Avenida Brigadeiro Faria Lima", "number": "2232", "district": "Jardim Paulistano", "cep": "01451-001", "lat": -23.5757, "lng": -46.6882},
	dropoff,
}

// fillFake makes a day of orders, one in each state and more on the way.
func fillFake(f *fake) {
	walks := [][]string{
		{},
		{"ASSIGNING"},
		{"ASSIGNING", "UNASSIGNABLE"},
		{"ASSIGNING", "ASSIGNED"},
		{"ASSIGNING", "ASSIGNED", "PICKUP_ONGOING"},
		{"ASSIGNING", "ASSIGNED", "PICKUP_ONGOING", "ARRIVED_AT_MERCHANT"},
		{"ASSIGNING", "ASSIGNED", "PICKUP_ONGOING", "ARRIVED_AT_MERCHANT", "PICKED_UP", "FAILED"},
		{"ASSIGNING", "ASSIGNED", "PICKUP_ONGOING", "ARRIVED_AT_MERCHANT", "PICKED_UP", "DELIVERY_ONGOING"},
		{"ASSIGNING", "ASSIGNED", "PICKUP_ONGOING", "ARRIVED_AT_MERCHANT", "PICKED_UP", "DELIVERY_ONGOING", "ARRIVED_AT_CUSTOMER", "DELIVERED"},
		{"CANCELLED"},
	}
	for i, walk := range append(walks, walks[7], walks[8], walks[8]) {
		door := doors[i%len(doors)]
		order := f.make(fmt.Sprint(i), map[string]any{
			"items": feast, "promised_at": time.Now().Add(45 * time.Minute), "pickup": pickup, "dropoff": door,
			"customer": map[string]any{"name": "Ana Beatriz Moura", "phone": "(11) 91234-5678"},
		})
		for _, to := range walk {
			order = f.move(order, to)
		}
		if order["courier"] != nil && !orders.State(fmt.Sprint(order["state"])).Ended() {
			id, _ := order["id"].(string)
			f.locate(id, 0.2+0.1*float64(i%7), time.Now())
			order["updated_at"] = time.Now().Add(-time.Minute)
		}
	}
}

type view struct {
	name string
	look browser.Look
}

func views() []view {
	var all []view
	for _, size := range []struct {
		name string
		w, h int64
	}{{"desktop", 1280, 860}, {"phone", 390, 844}, {"narrow", 360, 740}} {
		for _, scheme := range []string{"light", "dark"} {
			for _, lang := range []string{"pt-BR", "en-US"} {
				all = append(all, view{size.name + "-" + scheme + "-" + lang[:2], browser.Look{
					Width: size.w, Height: size.h, Dark: scheme == "dark", Locale: lang, Zone: "America/Sao_Paulo",
				}})
			}
		}
	}
	return all
}

func TestPagesFitAndAreReadableInEveryLook(t *testing.T) {
	f, url := serve(t)
	f.with(func() { fillFake(f) })
	ctx := browser.New(t, browser.NoWebGL) // the same colours and markers, and much sooner than without a GPU
	for _, v := range views() {
		browser.As(ctx, t, v.look)
		browser.Open(ctx, t, url+"/?"+v.name+"#key="+testKey) // another fragment alone loads nothing
		live(ctx, t)
		browser.Until[bool](ctx, t, `document.querySelectorAll("li.row").length >= 13 && document.querySelector(".bar i") !== null`)
		browser.Click(ctx, t, "#create")
		browser.Until[bool](ctx, t, `document.querySelector("li.row[data-ms]") !== null`)
		drawn(ctx, t, ".fleet")
		inspect(ctx, t, v, "desk-"+v.name)
		if v.look.Locale == "pt-BR" { // its words are the longer ones
			browser.Click(ctx, t, `li.row[data-state="DELIVERY_ONGOING"] .open`)
			drawn(ctx, t, ".sheet")
			browser.Until[bool](ctx, t, `document.querySelector(".sheet .history li:nth-child(6)") !== null`)
			window(ctx, t, "sheet-"+v.name)
			readable(ctx, t, v, "sheet-"+v.name)
		}
		browser.Open(ctx, t, url+"/track/"+onTheWay(f))
		live(ctx, t)
		browser.Until[bool](ctx, t, `document.querySelector("#now") !== null`)
		drawn(ctx, t, ".live")
		inspect(ctx, t, v, "track-"+v.name)
	}
}

// drawn waits for a map and for the marker of a courier on it.
func drawn(ctx context.Context, t *testing.T, within string) {
	t.Helper()
	browser.Until[bool](ctx, t, `document.querySelector("`+within+` .map")?.dataset.map && document.querySelector("`+within+` .map-mark-courier[data-at]") !== null`)
}

func onTheWay(f *fake) (token string) {
	f.with(func() {
		for _, o := range f.orders {
			if o["state"] == "DELIVERY_ONGOING" {
				token, _ = o["tracking_token"].(string)
			}
		}
	})
	return token
}

func inspect(ctx context.Context, t *testing.T, v view, name string) {
	t.Helper()
	browser.Eval[bool](ctx, t, `scrollTo(0, 0), true`) // or what sticks to the top lies lower
	browser.Screenshot(ctx, t, name)
	readable(ctx, t, v, name)
}

// window keeps what the screen shows: in a picture of the whole page what covers
// the screen would lie somewhere in the middle.
func window(ctx context.Context, t *testing.T, name string) {
	t.Helper()
	bounded, cancel := context.WithTimeout(ctx, browser.Patience)
	defer cancel()
	image, err := chromedp.Run(bounded, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(filepath.Join(t.ArtifactDir(), name+".png"), image, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func readable(ctx context.Context, t *testing.T, v view, name string) {
	t.Helper()
	if lang := browser.Eval[string](ctx, t, `document.documentElement.lang`); lang[:2] != v.look.Locale[:2] {
		t.Errorf("%s: lang=%s", name, lang)
	}
	if over := browser.Eval[int64](ctx, t, `document.documentElement.scrollWidth`); over > v.look.Width {
		t.Errorf("%s: page is %d px wide, the screen %d", name, over, v.look.Width)
	}
	for _, fault := range browser.Eval[[]string](ctx, t, lowContrast) {
		t.Errorf("%s: contrast %s", name, fault)
	}
	for _, fault := range browser.Eval[[]string](ctx, t, unnamed) {
		t.Errorf("%s: no accessible name: %s", name, fault)
	}
	for _, host := range browser.Eval[[]string](ctx, t, `performance.getEntriesByType("resource").map((r) => new URL(r.name).host).filter((h) => h !== location.host)`) {
		t.Errorf("%s: asked another host: %s", name, host)
	}
}

// lowContrast measures every visible text against what is painted behind it
// (WCAG 2.2, 1.4.3: 4.5 to 1, 3 to 1 for large text). Colours are read back
// from a canvas, because a computed one may be in any colour space.
const lowContrast = `(() => {
	const paint = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d", { willReadFrequently: true });
	const over = (colour, under) => {
		paint.fillStyle = "rgb(" + under.join(",") + ")";
		paint.fillRect(0, 0, 1, 1);
		paint.fillStyle = colour;
		paint.fillRect(0, 0, 1, 1);
		return [...paint.getImageData(0, 0, 1, 1).data].slice(0, 3);
	};
	const behind = (e) => {
		const chain = [];
		for (let n = e; n; n = n.parentElement) chain.unshift(getComputedStyle(n).backgroundColor);
		return chain.reduce((under, colour) => over(colour, under), [255, 255, 255]);
	};
	const light = (rgb) => {
		const [r, g, b] = rgb.map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const faults = new Set();
	for (const e of document.querySelectorAll("body *")) {
		const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) || e.matches("input, select");
		if (!own || !e.checkVisibility() || e.closest(".visually-hidden, .skip, :disabled, .pulse")) continue;
		const style = getComputedStyle(e), under = behind(e), ink = over(style.color, under);
		const [hi, lo] = [light(ink), light(under)].sort((a, b) => b - a);
		const ratio = (hi + 0.05) / (lo + 0.05), size = parseFloat(style.fontSize);
		const least = size >= 24 || (size >= 18.66 && style.fontWeight >= 700) ? 3 : 4.5;
		if (ratio < least) faults.add(ratio.toFixed(2) + " " + e.className + " " + e.textContent.slice(0, 40));
	}
	return [...faults];
})()`

const unnamed = `[...document.querySelectorAll("button, a, input, select")].filter((e) =>
	!(e.getAttribute("aria-label") || e.textContent.trim() || e.labels?.length)).map((e) => e.outerHTML.slice(0, 120))`
