package consume

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/waybillhq/waybill/alert"
)

// notes keeps what the alerts and the autoscaler told, as their receiver and
// their log.
type notes struct {
	mu    sync.Mutex
	began time.Time
	marks []LoadMark
	fired *float64
	over  *float64
}

func (n *notes) add(workers int64, text string) (at float64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	at = time.Since(n.began).Seconds()
	n.marks = append(n.marks, LoadMark{At: at, Workers: workers, Text: text})
	return at
}

// all gives the marks, and when the first alert fired and the last was over.
func (n *notes) all() (marks []LoadMark, fired, over *float64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.marks, n.fired, n.over
}

func (n *notes) firing() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.fired != nil && n.over == nil
}

// Name, Repeat and Send implement alert.Sink.
func (n *notes) Name() string { return "measurement" }

// Repeat implements alert.Sink.
func (n *notes) Repeat() time.Duration { return 0 }

// Send implements alert.Sink.
func (n *notes) Send(_ context.Context, note alert.Notice) error {
	text := "alert is over"
	if note.Firing() {
		text = "alert fires: " + note.Text
	}
	at := n.add(0, text)
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case !note.Firing():
		n.over = &at
	case n.fired == nil:
		n.fired = &at
	default:
		n.over = nil // again
	}
	return nil
}

// Enabled implements slog.Handler.
func (n *notes) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler: changes of the workers are marks.
func (n *notes) Handle(_ context.Context, r slog.Record) error {
	var workers int64
	why := ""
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "workers":
			workers = a.Value.Int64()
		case "why":
			why = a.Value.String()
		}
		return true
	})
	if why != "" {
		n.add(workers, why)
	}
	return nil
}

// WithAttrs implements slog.Handler.
func (n *notes) WithAttrs([]slog.Attr) slog.Handler { return n }

// WithGroup implements slog.Handler.
func (n *notes) WithGroup(string) slog.Handler { return n }
