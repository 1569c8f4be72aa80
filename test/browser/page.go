package browser

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Open navigates and waits for the page's load event.
func Open(ctx context.Context, t testing.TB, url string) {
	t.Helper()
	Do(ctx, t, chromedp.Navigate(url))
}

// Do runs actions and fails the test where one fails or takes longer than
// Patience.
func Do(ctx context.Context, t testing.TB, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	bounded, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	if err := chromedp.Do(bounded, steps...); err != nil {
		t.Fatalf("browser: %v", err)
	}
}

// Eval is the value of a JavaScript expression, awaited where it is a promise.
func Eval[T any](ctx context.Context, t testing.TB, expression string) T {
	t.Helper()
	bounded, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	v, err := chromedp.Run(bounded, chromedp.Evaluate[T](expression, awaited))
	if err != nil {
		t.Fatalf("evaluate %s: %v", expression, err)
	}
	return v
}

// Until waits for an expression to become truthy and returns its value. It looks
// from within the page and compiles nothing there, which a strict content
// security policy would refuse.
func Until[T any](ctx context.Context, t testing.TB, expression string) T {
	t.Helper()
	bounded, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	v, err := chromedp.Run(bounded, chromedp.Evaluate[T](fmt.Sprintf(poll, expression), awaited))
	if err != nil {
		t.Fatalf("wait for %s: %v\npage shows:\n%s", expression, err, text(ctx))
	}
	return v
}

const poll = `new Promise((resolve, reject) => {
	const look = () => {
		try {
			const value = (%s);
			value ? resolve(value) : setTimeout(look, 10);
		} catch (e) { reject(e); }
	};
	look();
})`

func awaited(p *runtime.EvaluateParams) { p.AwaitPromise = new(true) }

// text is what the page shows, for the message of a failed wait.
func text(ctx context.Context) string {
	v, err := chromedp.Run(ctx, chromedp.Evaluate[string](`document.body.innerText.slice(0, 2000)`))
	if err != nil {
		return err.Error()
	}
	return v
}

// Click presses the mouse in the middle of the first element of a selector, once
// it is enabled and nothing lies over that place. The place is asked of the page
// itself: chromedp's own copy of the document falls behind where hundreds of
// rows come and go.
func Click(ctx context.Context, t testing.TB, selector string) {
	t.Helper()
	at := Until[[]float64](ctx, t, fmt.Sprintf(aim, selector))
	Do(ctx, t, chromedp.MouseClickXY(at[0], at[1]))
}

const aim = `(() => {
	const e = document.querySelector(%q);
	if (!e || e.disabled) return null;
	e.scrollIntoView({block: "center", behavior: "instant"});
	const r = e.getBoundingClientRect(), x = r.x + r.width / 2, y = r.y + r.height / 2;
	return e.contains(document.elementFromPoint(x, y)) ? [x, y] : null;
})()`

// Press sends keys to what has the focus, as a person at the keyboard does.
func Press(ctx context.Context, t testing.TB, keys string) {
	t.Helper()
	Do(ctx, t, chromedp.KeyEvent(keys))
}

// Look is how a visitor sees pages.
type Look struct {
	Width, Height int64
	Dark          bool
	Locale        string // e.g. pt-BR
	Zone          string // e.g. America/Sao_Paulo
}

// As makes the page be seen that way from the next navigation on.
func As(ctx context.Context, t testing.TB, look Look) {
	t.Helper()
	Do(ctx, t,
		chromedp.EmulateViewport(look.Width, look.Height),
		media(look.Dark),
		locale(look.Locale),
		zone(look.Zone),
	)
}

func media(dark bool) chromedp.Action[chromedp.Void] {
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	return chromedp.Func(func(ctx context.Context, tg *chromedp.Target) error {
		_, err := cdp.Call(ctx, tg, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return err
	})
}

// locale sets what the page's scripts see: navigator.languages and Intl.
func locale(name string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, tg *chromedp.Target) error {
		if name == "" {
			return nil
		}
		agent, err := chromedp.Evaluate[string](`navigator.userAgent`)(ctx, tg)
		if err != nil {
			return err
		}
		if _, err := cdp.Call(ctx, tg, emulation.SetUserAgentOverride, emulation.SetUserAgentOverrideParams{UserAgent: agent, AcceptLanguage: name}); err != nil {
			return err
		}
		_, err = cdp.Call(ctx, tg, emulation.SetLocaleOverride, emulation.SetLocaleOverrideParams{Locale: name})
		return err
	})
}

func zone(name string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, tg *chromedp.Target) error {
		if name == "" {
			return nil
		}
		_, err := cdp.Call(ctx, tg, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: name})
		return err
	})
}

// Screenshot keeps the whole page as name.png with the test's artifacts
// (go test -artifacts -outputdir DIR) and returns the file's path.
func Screenshot(ctx context.Context, t testing.TB, name string) string {
	t.Helper()
	bounded, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	image, err := chromedp.Run(bounded, chromedp.FullScreenshot(100))
	if err != nil {
		t.Fatalf("screenshot %s: %v", name, err)
	}
	path := filepath.Join(t.ArtifactDir(), name+".png")
	if err := os.WriteFile(path, image, 0o600); err != nil {
		t.Fatalf("keep screenshot: %v", err)
	}
	return path
}
