package consume

import (
	"runtime"
	"time"
)

// LoadSample is what the monitor and the group said at a moment. Nil is
// unknown.
type LoadSample struct {
	At      float64  `json:"s"`              // since the load began
	Lag     *int64   `json:"lag"`            // events behind
	Seconds *float64 `json:"seconds_behind"` // the age of the event that is read next
	Workers int64    `json:"workers"`        // there are to be
}

// LoadMark is what happened at a moment.
type LoadMark struct {
	At      float64 `json:"s"`
	Workers int64   `json:"workers,omitempty"` // from then on; 0: it is not about them
	Text    string  `json:"text"`
}

// LoadResult is one run. What did not happen is nil.
type LoadResult struct {
	Name    string       `json:"name"`
	ByHand  bool         `json:"by_hand"`
	Events  int64        `json:"events"`
	Produce int          `json:"produce_per_s"`
	Calm    int          `json:"calm_per_s"`
	Burst   float64      `json:"burst_s"`
	Handler float64      `json:"handler_ms"`
	Rule    string       `json:"alert"`
	MaxLag  int64        `json:"max_lag"`
	MaxAge  float64      `json:"max_seconds_behind"`
	Fired   *float64     `json:"alert_fired_s"`
	Over    *float64     `json:"alert_over_s"`
	Drained *float64     `json:"drained_s"` // the lag is below a second, after its greatest
	Least   int64        `json:"workers_first"`
	Most    int64        `json:"workers_most"`
	Last    int64        `json:"workers_last"`
	Marks   []LoadMark   `json:"marks"`
	Samples []LoadSample `json:"samples"`

	Lost       int64   `json:"lost"`
	Reordered  int64   `json:"reordered"`
	Duplicates int64   `json:"duplicates"`
	Cores      int     `json:"cores"`
	Took       float64 `json:"took_s"`
}

// sum fills in what the samples and marks come to.
func (l *load) sum(took time.Duration) {
	o := &l.out
	o.Name, o.ByHand, o.Cores, o.Took = "load", l.cfg.ByHand, runtime.NumCPU(), took.Seconds()
	o.Produce, o.Calm, o.Burst = l.cfg.Produce, l.cfg.Calm, l.cfg.Burst.Seconds()
	o.Handler, o.Rule, o.Least = l.cfg.Handler.Seconds()*1000, l.cfg.Rule.Sentence, int64(l.cfg.Workers)
	o.Lost, o.Reordered, o.Duplicates = l.res.Lost, l.res.Reordered, l.res.Duplicates
	o.Marks, o.Fired, o.Over = l.notes.all()
	for _, s := range o.Samples {
		o.Most, o.Last = max(o.Most, s.Workers), s.Workers
		if s.Seconds == nil || s.Lag == nil {
			continue
		}
		o.MaxLag = max(o.MaxLag, *s.Lag)
		switch {
		case *s.Seconds >= o.MaxAge:
			o.MaxAge, o.Drained = *s.Seconds, nil
		case *s.Seconds < 1 && o.Drained == nil:
			at := s.At
			o.Drained = &at
		}
	}
}
