package cli

import (
	"fmt"
	"html"
	"math"
	"strings"

	"github.com/waybillhq/waybill/bench/consume"
)

// Geometry of the picture, in its own units.
const (
	svgWidth  = 860
	svgLeft   = 78.0
	svgRight  = 836.0
	svgTop    = 92.0
	panelHigh = 132.0
	panelGap  = 44.0
	bandTop   = 54 // of what holds for all panels
)

// svgStyle makes the picture legible on light and on dark pages: it brings its
// own ground.
const svgStyle = `<style>
text{font:13px system-ui,sans-serif;fill:#24292f}
.head{font-size:16px;font-weight:600}.note{fill:#57606a}
.ground{fill:#fff}.grid{stroke:#d0d7de}.axis{stroke:#57606a}
.lag{stroke:#0969da}.lagfill{fill:#0969da;fill-opacity:.14}
.age{stroke:#8250df}.agefill{fill:#8250df;fill-opacity:.12}
.work{stroke:#1a7f37}.workfill{fill:#1a7f37;fill-opacity:.12}
.alert{fill:#cf222e;fill-opacity:.10}.alertline{stroke:#cf222e}.alerttext{fill:#cf222e}
.load{stroke:#57606a}
@media (prefers-color-scheme:dark){
text{fill:#e6edf3}.note{fill:#9198a1}.ground{fill:#0d1117}.grid{stroke:#30363d}.axis{stroke:#9198a1}
.lag{stroke:#58a6ff}.lagfill{fill:#58a6ff}.age{stroke:#bc8cff}.agefill{fill:#bc8cff}.work{stroke:#3fb950}.workfill{fill:#3fb950}
.alert{fill:#ff7b72;fill-opacity:.16}.alertline{stroke:#ff7b72}.alerttext{fill:#ff7b72}.load{stroke:#9198a1}}
</style>`

// panel is one curve over the time of the run. A NaN is unknown, and left out.
type panel struct {
	label, class string
	values       []float64
	steps        bool
}

// drawLoad draws a run as an SVG that needs nothing else.
func drawLoad(r consume.LoadResult) string {
	var lag, age, workers []float64
	for _, s := range r.Samples {
		n, sec := math.NaN(), math.NaN()
		if s.Lag != nil {
			n = float64(*s.Lag)
		}
		if s.Seconds != nil {
			sec = *s.Seconds
		}
		lag, age, workers = append(lag, n), append(age, sec), append(workers, float64(s.Workers))
	}
	panels := []panel{
		{"events behind", "lag", lag, false}, {"seconds behind", "age", age, false}, {"workers", "work", workers, true},
	}
	high := svgTop + float64(len(panels))*(panelHigh+panelGap) + 12
	var b strings.Builder
	how := "workers follow the lag"
	if r.ByHand {
		how = "workers set by hand"
	}
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %.0f" role="img" aria-labelledby="title desc">
<title id="title">Lag of a group under load: %s</title>
<desc id="desc">%s</desc>
%s
<rect class="ground" width="100%%" height="100%%" rx="6"/>
<text class="head" x="%.0f" y="28">%s</text>
<text class="note" x="%.0f" y="48">%s</text>
`, svgWidth, high, how, html.EscapeString(describeLoad(r)), svgStyle, svgLeft, strings.ToUpper(how[:1])+how[1:], svgLeft,
		html.EscapeString(fmt.Sprintf("%d events/s for %.0f s, then %d/s; each handler waits %.0f ms; alert: %s", r.Produce, r.Burst, r.Calm, r.Handler, r.Rule)))
	drawEvents(&b, r, high)
	for i, p := range panels {
		p.draw(&b, r, svgTop+float64(i)*(panelHigh+panelGap))
	}
	fmt.Fprintf(&b, "<text class=\"note\" x=\"%.0f\" y=\"%.0f\" text-anchor=\"end\">seconds since the load began</text>\n</svg>\n", svgRight, high-8)
	return b.String()
}

// describeLoad tells the curve to those who do not see it.
func describeLoad(r consume.LoadResult) string {
	return fmt.Sprintf("%d events a second come in for %.0f seconds, then %d. With %d workers the lag grows to %d events and %.1f seconds. The alert fires %s and is over %s. There are %d workers at most, the lag is drained %s, and %d workers are left at the end. Lost %d, twice %d.",
		r.Produce, r.Burst, r.Calm, r.Least, r.MaxLag, r.MaxAge, atText(r.Fired), atText(r.Over), r.Most, atText(r.Drained), r.Last, r.Lost, r.Duplicates)
}

func xOf(r consume.LoadResult, at float64) float64 {
	return svgLeft + (svgRight-svgLeft)*at/max(lastAt(r), 1)
}

// drawEvents draws what holds for all panels: while the alert fired, and when
// the load ended.
func drawEvents(b *strings.Builder, r consume.LoadResult, high float64) {
	bottom := high - 36
	if r.Fired != nil {
		from, to := xOf(r, *r.Fired), svgRight
		if r.Over != nil {
			to = xOf(r, *r.Over)
		}
		fmt.Fprintf(b, `<rect class="alert" x="%.1f" y="%d" width="%.1f" height="%.1f"/>`+"\n", from, bandTop, to-from, bottom-bandTop)
		fmt.Fprintf(b, `<path class="alertline" d="M%.1f %dV%.1fM%.1f %dV%.1f"/>`+"\n", from, bandTop, bottom, to, bandTop, bottom)
		fmt.Fprintf(b, `<text class="alerttext" x="%.1f" y="68">alert fires %s, over %s</text>`+"\n", from+6, atText(r.Fired), atText(r.Over))
	}
	if x := xOf(r, r.Burst); x < svgRight {
		fmt.Fprintf(b, `<path class="load" stroke-dasharray="4 4" d="M%.1f %dV%.1f"/>`+"\n", x, bandTop, bottom)
		fmt.Fprintf(b, `<text class="note" x="%.1f" y="%.1f">then %d/s</text>`+"\n", x+6, svgTop+18, r.Calm)
	}
}

func (p panel) draw(b *strings.Builder, r consume.LoadResult, top float64) {
	most := 0.0
	for _, v := range p.values {
		if v > most { // false of what is unknown
			most = v
		}
	}
	most = ceiling(most)
	bottom := top + panelHigh
	y := func(v float64) float64 { return bottom - panelHigh*v/most }
	fmt.Fprintf(b, `<text x="%.0f" y="%.1f">%s</text>`+"\n", svgLeft, top-6, p.label)
	for i := range 3 {
		v := most * float64(i) / 2
		class := "grid"
		if i == 0 {
			class = "axis"
		}
		fmt.Fprintf(b, `<path class="%s" d="M%.0f %.1fH%.0f"/><text class="note" x="%.0f" y="%.1f" text-anchor="end">%s</text>`+"\n",
			class, svgLeft, y(v), svgRight, svgLeft-8, y(v)+4, tickText(v))
	}
	for at := 0.0; at <= lastAt(r); at += 10 {
		fmt.Fprintf(b, `<path class="axis" d="M%.1f %.1fv4"/><text class="note" x="%.1f" y="%.1f" text-anchor="middle">%.0f</text>`+"\n",
			xOf(r, at), bottom, xOf(r, at), bottom+18, at)
	}
	var line strings.Builder
	begun, before := false, 0.0
	first, last := 0.0, 0.0
	for i, v := range p.values {
		if math.IsNaN(v) {
			continue
		}
		x := xOf(r, r.Samples[i].At)
		switch {
		case !begun:
			fmt.Fprintf(&line, "M%.1f %.1f", x, y(v))
			begun, first = true, x
		case p.steps:
			fmt.Fprintf(&line, "L%.1f %.1fL%.1f %.1f", x, y(before), x, y(v))
		default:
			fmt.Fprintf(&line, "L%.1f %.1f", x, y(v))
		}
		before, last = v, x
	}
	if begun {
		fmt.Fprintf(b, `<path class="%sfill" d="%sL%.1f %.1fL%.1f %.1fZ"/>`+"\n", p.class, line.String(), last, bottom, first, bottom)
		fmt.Fprintf(b, `<path class="%s" fill="none" stroke-width="2" stroke-linejoin="round" d="%s"/>`+"\n", p.class, line.String())
	}
}

// ceiling is the next round number whose half is one too.
func ceiling(v float64) float64 {
	if v <= 0 {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 1.2, 1.6, 2, 2.4, 3, 4, 5, 6, 8, 10} {
		if v <= m*unit {
			return m * unit
		}
	}
	return 10 * unit
}

func tickText(v float64) string {
	if v == math.Trunc(v) {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.1f", v)
}
