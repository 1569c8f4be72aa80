package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/waybillhq/waybill/test/browser"
	"github.com/waybillhq/waybill/test/proc"
)

// steps is how far each order of the picture's day has come, the first created
// first.
var steps = []int{8, 8, 7, 6, 4, 3, 2, 1, 0}

// A day's orders, each made by one click, in every size and scheme. With
// WAYBILL_PICTURES naming a folder, desk.png and track.png are kept there for
// the README.
func TestDayOfOrdersFitsEveryLook(t *testing.T) {
	w := proc.Up(t)
	desk := openDesk(t, w)
	var ids []string
	for n := range steps {
		browser.Click(desk, t, "#create")
		browser.Until[int](desk, t, `document.querySelectorAll("li.row[data-ms]").length === `+jsonText(n+1)+` ? 1 : 0`)
		ids = append(ids, browser.Eval[string](desk, t, `document.querySelector("li.row[data-ms]").dataset.id`))
	}
	states := map[string]string{}
	for n, id := range ids {
		move(t, w, id, walk[:steps[n]]...)
		states[id] = append([]string{"CREATED"}, walk...)[steps[n]]
	}
	shows(desk, t, states)
	for state, n := range tally(states) {
		browser.Until[bool](desk, t, fmt.Sprintf(`document.querySelector('[data-filter=%q] b')?.textContent === "%d"`, state, n))
	}
	browser.Until[bool](desk, t, `document.querySelectorAll("li.row a.track-link").length === `+jsonText(len(ids)))
	browser.Until[bool](desk, t, `document.getAnimations().every((a) => a.effect.getTiming().iterations === Infinity)`)
	picture(desk, t, "desk")

	page := openTrack(t, w, "/track/"+read(t, w, ids[3]).Token)
	browser.As(page, t, browser.Look{Width: 440, Height: 860, Locale: "en-US", Zone: "America/Sao_Paulo"})
	browser.Do(page, t, chromedp.Reload())
	live(page, t)
	browser.Until[bool](page, t, `Boolean(document.querySelector(".map")?.dataset.map)`)
	picture(page, t, "track")

	for _, look := range []struct {
		name string
		browser.Look
	}{
		{"phone", browser.Look{Width: 390, Height: 844, Locale: "pt-BR", Zone: "America/Sao_Paulo"}},
		{"phone-dark", browser.Look{Width: 390, Height: 844, Dark: true, Locale: "en-US", Zone: "America/Sao_Paulo"}},
		{"desktop-dark", browser.Look{Width: 1280, Height: 860, Dark: true, Locale: "en-US", Zone: "America/Sao_Paulo"}},
	} {
		for name, each := range map[string]context.Context{"desk": desk, "track": page} {
			browser.As(each, t, look.Look)
			browser.Do(each, t, chromedp.Reload())
			live(each, t)
			browser.Until[bool](each, t, `document.querySelector("li.row:nth-of-type(9)") !== null || Boolean(document.querySelector(".map")?.dataset.map)`)
			bare(each, t)
			browser.Screenshot(each, t, name+"-"+look.name)
			if wide := browser.Eval[int64](each, t, `document.documentElement.scrollWidth`); wide > look.Width {
				t.Errorf("%s on a %s is %d px wide", name, look.name, wide)
			}
		}
	}
}

func tally(states map[string]string) map[string]int {
	n := map[string]int{}
	for _, state := range states {
		n[state]++
	}
	return n
}

// bare goes to the top and takes away the room for a scrollbar, which a phone has
// not and a picture does without.
func bare(page context.Context, t *testing.T) {
	t.Helper()
	browser.Eval[bool](page, t, `new Promise((drawn) => {
		document.documentElement.style.scrollbarGutter = "auto";
		scrollTo(0, 0);
		requestAnimationFrame(() => requestAnimationFrame(() => drawn(true)));
	})`)
}

// picture takes a screenshot, for the README too where it is asked for.
func picture(page context.Context, t *testing.T, name string) {
	t.Helper()
	bare(page, t)
	path := browser.Screenshot(page, t, name)
	folder := os.Getenv("WAYBILL_PICTURES")
	if folder == "" {
		return
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, name+".png"), b, 0o600); err != nil {
		t.Fatal(err)
	}
}
