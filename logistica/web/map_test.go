package web

import (
	"context"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/waybillhq/waybill/test/browser"
)

// openRide is the tracking page of an order that is out with its courier.
func openRide(t *testing.T, with ...chromedp.ExecAllocatorOption) (context.Context, *fake) {
	t.Helper()
	f, url := serve(t)
	f.with(func() {
		f.make("k", map[string]any{"items": feast})
		f.assign(firstOrder)
		f.locate(firstOrder, 0.2, time.Now())
	})
	ctx := browser.New(t, with...)
	browser.As(ctx, t, browser.Look{Width: 390, Height: 844, Locale: "en-US", Zone: "America/Sao_Paulo"})
	browser.Open(ctx, t, url+"/track/tok1")
	live(ctx, t)
	browser.Until[bool](ctx, t, `document.querySelector(".map-mark-courier")?.dataset.at !== undefined`)
	return ctx, f
}

const courierLat = `Number(document.querySelector(".map-mark-courier").dataset.at.split(",")[0])`

// Either base shows the same markers in the same places, to a few pixels.
func TestMapIsDrawnWithAndWithoutWebGL(t *testing.T) {
	for kind, option := range map[string]chromedp.ExecAllocatorOption{"gl": browser.WebGL, "svg": browser.NoWebGL} {
		t.Run(kind, func(t *testing.T) {
			ctx, f := openRide(t, option)
			browser.Until[bool](ctx, t, `document.querySelector(".map").dataset.map === "`+kind+`"`)
			browser.Until[bool](ctx, t, `document.querySelectorAll(".map-mark-pickup, .map-mark-dropoff").length === 2 && document.querySelectorAll(".map-name:not([hidden])").length > 0`)
			f.with(func() { f.locate(firstOrder, 0.6, time.Now().Add(time.Second)) })
			browser.Until[bool](ctx, t, courierLat+` === -23.56272`)
			within := `(() => {
				const box = document.querySelector(".map").getBoundingClientRect();
				return [...document.querySelectorAll(".map-mark")].filter((m) => {
					const r = m.getBoundingClientRect();
					return r.x <= box.x || r.x >= box.right || r.y <= box.y || r.y >= box.bottom;
				}).map((m) => m.className);
			})()`
			if out := browser.Eval[[]string](ctx, t, within); len(out) > 0 {
				t.Errorf("out of view: %v", out)
			}
			browser.Screenshot(ctx, t, "map-"+kind)
		})
	}
}

// Late and repeated positions are the rule on a phone's network.
func TestCourierIsNeverMovedBack(t *testing.T) {
	ctx, f := openRide(t, browser.NoWebGL)
	now := time.Now()
	f.with(func() { f.locate(firstOrder, 0.8, now.Add(10*time.Second)) })
	browser.Until[bool](ctx, t, courierLat+` === -23.56486`)
	f.with(func() {
		f.locate(firstOrder, 0.3, now.Add(5*time.Second)) // late
		f.locate(firstOrder, 0.4, now.Add(10*time.Second))
		f.locate(firstOrder, 0.9, now.Add(11*time.Second))
	})
	seen := browser.Eval[[]float64](ctx, t, `new Promise((resolve) => {
		const seen = [];
		const look = () => {
			seen.push(`+courierLat+`);
			seen.at(-1) === -23.56593 ? resolve(seen) : requestAnimationFrame(look);
		};
		look();
	})`)
	for i := 1; i < len(seen); i++ {
		if seen[i] > seen[i-1] {
			t.Fatalf("went back from %v to %v", seen[i-1], seen[i])
		}
	}
}

func TestCustomerSeesWhoComesWhenAndWithWhichCode(t *testing.T) {
	ctx, _ := openRide(t, browser.NoWebGL)
	browser.Until[bool](ctx, t, `document.querySelector(".who").textContent.includes("Marina") && document.querySelector(".who").textContent.includes("by motorbike")`)
	browser.Until[bool](ctx, t, `document.querySelector(".eta time").textContent.startsWith("in 1")`)
	browser.Until[bool](ctx, t, `document.querySelector(".whereabouts").textContent.includes("from the store")`)
	browser.Until[bool](ctx, t, `document.querySelector("[data-code]").textContent === "4071"`)
	browser.Click(ctx, t, "[data-copy]")
	browser.Until[bool](ctx, t, `["Copied", "Selected: copy it"].includes(document.querySelector(".code [role=status]").textContent)`)
	if spoken := browser.Eval[int](ctx, t, `document.querySelectorAll(".live [aria-live], .live [role=status]").length`); spoken != 0 {
		t.Errorf("%d parts of the map speak by themselves", spoken)
	}
}

func TestEndedOrSearchingOrderShowsNobodysPosition(t *testing.T) {
	ctx, f := openRide(t, browser.NoWebGL)
	f.with(func() { f.move(f.orders[firstOrder], "CREATED") })
	browser.Until[bool](ctx, t, `document.querySelector('#now[data-state="CREATED"]') && !document.querySelector(".map-mark-courier") && !document.querySelector(".who") && !document.querySelector(".eta")`)
	f.with(func() {
		f.locate(firstOrder, 0.5, time.Now().Add(time.Minute)) // of the courier who was let go
		f.assign(firstOrder)
	})
	browser.Until[bool](ctx, t, `document.querySelector(".who") !== null`)
	f.with(func() {
		for _, to := range []string{"PICKUP_ONGOING", "ARRIVED_AT_MERCHANT", "PICKED_UP", "DELIVERY_ONGOING", "ARRIVED_AT_CUSTOMER", "DELIVERED"} {
			f.move(f.orders[firstOrder], to)
		}
	})
	browser.Until[bool](ctx, t, `document.querySelector(".conn-ended") && !document.querySelector(".map") && !document.querySelector("[data-code]") && !document.querySelector(".who")`)
}

func TestOldPositionIsCalledOld(t *testing.T) {
	ctx, f := openRide(t, browser.NoWebGL)
	f.with(func() { f.fixes[firstOrder]["fix_time"] = time.Now().Add(-150 * time.Second).UTC() })
	browser.Do(ctx, t, chromedp.Reload())
	browser.Until[bool](ctx, t, `document.querySelector(".whereabouts")?.textContent.includes("Position of 2 min ago") && document.querySelector(".map-mark-courier.is-stale") !== null`)
}
