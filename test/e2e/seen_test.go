package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/waybillhq/waybill/test/browser"
	"github.com/waybillhq/waybill/test/proc"
)

// From the click to what it made being painted, in real browsers. It tells the
// figures, which are the machine's, and demands only that all of it is seen.
func TestHowSoonAClickIsSeen(t *testing.T) {
	const creations, walks = 24, 4
	w := proc.Up(t)
	desk := openDesk(t, w, browser.NoWebGL)
	var ids []string
	var created, moved, tracked []float64
	for n := range creations {
		row := fmt.Sprintf(`document.querySelectorAll("li.row[data-ms]").length === %d`, n+1)
		watch(desk, t, row)
		browser.Click(desk, t, "#create")
		created = append(created, since(desk, t, clicked(desk, t)))
		ids = append(ids, browser.Eval[string](desk, t, `document.querySelector("li.row[data-ms]").dataset.id`))
	}
	for _, id := range ids[:walks] {
		move(t, w, id, proc.Search...)
		page := openTrack(t, w, "/track/"+read(t, w, id).Token, browser.NoWebGL)
		browser.Until[bool](page, t, `document.querySelector('[data-step="ASSIGNED"] time') !== null`)
		for _, to := range walk[2:] {
			row := fmt.Sprintf(`li.row[data-id=%q]`, id)
			watch(desk, t, fmt.Sprintf(`document.querySelector('%s[data-state=%q] .chip:not(.is-pending)') !== null`, row, to))
			watch(page, t, fmt.Sprintf(`document.querySelector('[data-step=%q].is-now time') !== null`, to))
			browser.Click(desk, t, fmt.Sprintf(`%s button[data-to=%q]`, row, to))
			from := clicked(desk, t)
			moved, tracked = append(moved, since(desk, t, from)), append(tracked, since(page, t, from))
		}
	}
	for what, ms := range map[string][]float64{
		"creation, click to its event's row on the desk": created,
		"step, click to its event's row on the desk":     moved,
		"step, click to the customer's timeline":         tracked,
	} {
		slices.Sort(ms)
		t.Logf("%s: n=%d median %.1f ms, 90 %% %.1f ms, least %.1f, most %.1f", what, len(ms), ms[len(ms)/2], ms[len(ms)*9/10], ms[0], ms[len(ms)-1])
	}
}

// watch notes when the next click is made on the page, and when the frame that
// shows something new has been painted: both in ms of the epoch, which two
// browsers of one machine share.
func watch(page context.Context, t *testing.T, shown string) {
	t.Helper()
	browser.Eval[bool](page, t, fmt.Sprintf(`(() => {
		window.clicked = 0;
		addEventListener("click", (e) => { window.clicked = performance.timeOrigin + e.timeStamp; }, { capture: true, once: true });
		window.shown = new Promise((resolve) => {
			const look = () => {
				if (%s) setTimeout(() => resolve(performance.timeOrigin + performance.now()));
				else requestAnimationFrame(look);
			};
			look();
		});
		return true;
	})()`, shown))
}

func clicked(page context.Context, t *testing.T) float64 {
	t.Helper()
	return browser.Until[float64](page, t, `window.clicked`)
}

func since(page context.Context, t *testing.T, click float64) float64 {
	t.Helper()
	return browser.Eval[float64](page, t, `window.shown`) - click
}
