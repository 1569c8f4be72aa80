package web

import (
	"testing"
	"time"

	"github.com/waybillhq/waybill/test/browser"
)

func TestCourierAndFaultPagesFitAndAreReadableInEveryLook(t *testing.T) {
	f, url := serve(t)
	f.faults.with(func() {
		now := time.Now()
		f.faults.set["billing-failure"] = map[string]any{"value": 30, "set_at": now, "until": now.Add(5 * time.Minute), "set_by": "API key of Cantina da Praça"}
		f.faults.set["poison-event"] = map[string]any{"value": 5, "left": 3, "set_at": now, "set_by": "operator"}
	})
	ctx := browser.New(t)
	for _, v := range views() {
		browser.As(ctx, t, v.look)
		browser.Open(ctx, t, url+"/faults?"+v.name+"#key="+testKey)
		browser.Until[bool](ctx, t, `document.querySelectorAll(".fault.is-on").length === 2`)
		inspect(ctx, t, v, "faults-"+v.name)
		f.courier.with(func() { f.courier.job, f.courier.state, f.courier.version = nil, "OFFLINE", f.courier.version+1 })
		browser.Open(ctx, t, url+"/courier?"+v.name+"#key="+courierKey)
		live(ctx, t)
		browser.Until[bool](ctx, t, `document.querySelector(".idle") !== null`)
		inspect(ctx, t, v, "courier-idle-"+v.name)
		for _, state := range []string{"ASSIGNED", "ARRIVED_AT_CUSTOMER"} {
			f.courier.offer(state)
			stands(ctx, t, state)
			inspect(ctx, t, v, "courier-"+state+"-"+v.name)
			tooSmall(t, v, state, browser.Eval[[]string](ctx, t, smallTargets))
		}
	}
}

// smallTargets is what a thumb would miss: less than 40 px high or wide.
const smallTargets = `[...document.querySelectorAll(".courier button, .courier a, .courier input")].filter((e) => {
	const box = e.getBoundingClientRect();
	return box.width < 40 || box.height < 40;
}).map((e) => e.outerHTML.slice(0, 100))`

func tooSmall(t *testing.T, v view, state string, list []string) {
	t.Helper()
	for _, target := range list {
		t.Errorf("%s, %s: too small for a thumb: %s", v.name, state, target)
	}
}
