package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/waybillhq/waybill/internal/app"
)

// startStatusLine keeps one line at the bottom of a terminal up to date until
// the returned function is called. Elsewhere it does nothing: a log of status
// lines helps nobody.
func startStatusLine(ctx context.Context, a *app.App, out io.Writer) (stop func()) {
	f, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		statusLine(ctx, a, out)
	}()
	return func() {
		cancel()
		<-done
	}
}

const statusEvery = time.Second

func statusLine(ctx context.Context, a *app.App, out io.Writer) {
	cl, err := a.Client()
	if err != nil {
		return
	}
	defer cl.Close()
	tick := time.NewTicker(statusEvery)
	defer tick.Stop()
	var before app.Stats
	for {
		select {
		case <-ctx.Done():
			_, _ = fmt.Fprint(out, "\r\x1b[K")
			return
		case <-tick.C:
		}
		now := a.Stats(ctx, cl)
		_, _ = fmt.Fprint(out, "\r\x1b[K"+statusText(before, now))
		before = now
	}
}

func statusText(before, now app.Stats) string {
	mean := "none yet"
	if now.SeenCount > 0 {
		mean = fmt.Sprintf("%.1f ms", float64(now.SeenMean.Microseconds())/1000)
	}
	return fmt.Sprintf("%6.0f events/s   lag %s   create→seen mean %s",
		(now.Published-before.Published)/statusEvery.Seconds(), number(now.Lag), mean)
}
