// Package browser drives a real Chromium for tests.
//
// Promise: each test has a browser of its own with a fresh profile, closed with
// the test; a message of level error on the page's console, or an exception that
// nothing caught, fails the test unless the test said that it expects it.
//
// Limits: one tab, headless, no network but what the test serves. A test is
// skipped only where no Chromium is installed.
package browser

import (
	"context"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// Patience bounds every wait of a test on a page. A busy machine starts a
// browser slowly; a page that is right is there long before.
const Patience = 2 * time.Minute

type console struct {
	mu      sync.Mutex
	errors  []string
	allowed []string
}

type consoleKey struct{}

// WebGL and NoWebGL are browsers that have it, computed without a GPU, and that
// have it not. Which of them a browser is without either is the machine's.
var (
	WebGL   = chromedp.Flag("enable-unsafe-swiftshader", true)
	NoWebGL = chromedp.Flag("disable-3d-apis", true)
)

// New starts a browser and returns the context that chromedp's actions and this
// package's functions take.
func New(t testing.TB, more ...chromedp.ExecAllocatorOption) context.Context {
	t.Helper()
	alloc, stop := chromedp.NewExecAllocator(context.Background(), append(options(t), more...)...)
	seen := &console{}
	ctx, cancel := chromedp.NewContext(context.WithValue(alloc, consoleKey{}, seen))
	if err := chromedp.Do(ctx); err != nil {
		cancel()
		stop()
		t.Fatalf("start browser: %v", err)
	}
	listened := seen.listen(ctx)
	t.Cleanup(func() {
		cancel()
		stop()
		<-listened
		for _, text := range seen.unexpected() {
			t.Errorf("console: %s", text)
		}
	})
	return ctx
}

// options are those a test needs on a machine without display, sound or
// privileges, and those that keep the browser from calling anywhere.
func options(t testing.TB) []chromedp.ExecAllocatorOption {
	t.Helper()
	return append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(find(t)),
		chromedp.NoSandbox,
		chromedp.DisableGPU,
		chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("lang", "en-US"),
		chromedp.WindowSize(1280, 800),
	)
}

func find(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no Chromium is installed")
	return ""
}

// Allow says that console errors containing part are expected: a browser logs
// every answer of status 400 and above as one.
func Allow(ctx context.Context, part string) {
	c := of(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.allowed = append(c.allowed, part)
}

// Errors is what the console has shown so far and Allow did not expect.
func Errors(ctx context.Context) []string {
	return of(ctx).unexpected()
}

func of(ctx context.Context) *console {
	c, ok := ctx.Value(consoleKey{}).(*console)
	if !ok {
		panic("browser: context is not from New")
	}
	return c
}

func (c *console) listen(ctx context.Context) <-chan struct{} {
	done := make(chan struct{})
	messages := chromedp.Console(ctx)
	go func() {
		defer close(done)
		for m, err := range messages {
			if err != nil {
				return
			}
			if m.IsException() || m.Type == "error" || m.Type == "assert" {
				c.add(m.String() + " (" + m.URL + ")")
			}
		}
	}()
	return done
}

func (c *console) add(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.errors = append(c.errors, text)
}

func (c *console) unexpected() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var left []string
	for _, text := range c.errors {
		if !containsAny(text, c.allowed) {
			left = append(left, text)
		}
	}
	return left
}

func containsAny(text string, parts []string) bool {
	for _, part := range parts {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}
