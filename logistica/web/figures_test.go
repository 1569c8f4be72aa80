package web

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"
	"github.com/google/uuid"

	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/test/browser"
)

const figuresRead = `document.querySelector("main")?.dataset.read > 0 && document.querySelectorAll(".plot svg").length >= 3`

func TestFiguresFitAndAreReadableInEveryLook(t *testing.T) {
	b := newFiguresBed(t)
	bakery, _ := b.merchant("Padaria São João")
	canteen, _ := b.merchant("Cantina da Praça")
	_, admin := b.merchant("") // is shown all that merchants are, and more
	b.day(bakery, canteen)
	ctx := browser.New(t)
	for _, v := range views() {
		browser.As(ctx, t, v.look)
		browser.Open(ctx, t, b.url+"/analytics?"+v.name+"#key="+admin)
		browser.Until[bool](ctx, t, figuresRead)
		inspect(ctx, t, v, "figures-"+v.name)
	}
}

func TestFiguresShowWhatTheEventsSay(t *testing.T) {
	b := newFiguresBed(t)
	bakery, key := b.merchant("Padaria São João")
	canteen, _ := b.merchant("Cantina da Praça")
	_, admin := b.merchant("")
	// Three orders of twelve minutes, one of them later than promised.
	minute := b.now.Add(-20 * time.Minute)
	for i := range 3 {
		b.delivered(bakery, minute, i == 0)
	}
	b.delivered(canteen, minute, true)

	ctx := browser.New(t)
	browser.As(ctx, t, browser.Look{Width: 1280, Height: 860, Locale: "en-US", Zone: "America/Sao_Paulo"})
	text := func(selector, want string) {
		t.Helper()
		browser.Until[bool](ctx, t, fmt.Sprintf(`document.querySelector(%q)?.textContent === %q`, selector, want))
	}
	browser.Open(ctx, t, b.url+"/analytics?1#key="+key)
	browser.Until[bool](ctx, t, figuresRead)
	text("#tile-minute dd", "3")
	text("#tile-delivered dd", "3")
	text("#tile-p50 dd", "12 min")
	text("#tile-late dd", "33.3%")
	text(`#states tr[data-state="DELIVERED"] b`, "3")
	if browser.Eval[bool](ctx, t, `document.querySelector("#tenants, #couriers, #merchant") !== null`) {
		t.Error("a merchant is shown what is an administrator's")
	}

	// By keyboard to the minute, which says what it has; the table has it too.
	tabTo(ctx, t, `document.activeElement.matches("#minutes .plot")`)
	browser.Press(ctx, t, kb.End)
	text("#minutes [aria-live]", browser.Eval[string](ctx, t, `document.querySelector("#minutes .tip").textContent`))
	for range 20 {
		browser.Press(ctx, t, kb.ArrowLeft)
	}
	browser.Until[bool](ctx, t, `document.querySelector("#minutes .tip").textContent.endsWith(": 3")`)
	browser.Screenshot(ctx, t, "figures-point")
	browser.Eval[bool](ctx, t, `document.querySelector("#minutes details").open = true`)
	text("#minutes tbody td", "3")
	browser.Press(ctx, t, kb.Escape)
	browser.Until[bool](ctx, t, `document.querySelector("#minutes .tip") === null`)

	// What happens while it is looked at shows without a reload.
	b.write(b.happened(bakery, time.Now(), contracts.OrderCreated{OrderID: uuid.New(), Version: 1, Currency: "BRL"}))
	b.streams.tell()
	text("#tile-minute dd", "4")
	text(`#states tr[data-state="CREATED"] b`, "1")

	browser.Open(ctx, t, b.url+"/analytics?2#key="+admin)
	browser.Until[bool](ctx, t, `document.querySelectorAll("#tenants tbody tr").length === 2`)
	text("#tile-minute dd", "5")
	text("#tile-delivered dd", "4")
	browser.Click(ctx, t, fmt.Sprintf(`#tenants tr[data-tenant="%s"] button`, canteen))
	text("#tile-minute dd", "1")
	text("#tile-late dd", "100%")
	browser.Until[bool](ctx, t, fmt.Sprintf(`document.querySelector("#merchant").value === %q`, canteen.String()))
	browser.Click(ctx, t, `[data-hours="168"]`)
	browser.Until[bool](ctx, t, `document.querySelector('[data-hours="168"]').getAttribute("aria-pressed") === "true"`)
}

func TestFiguresWithoutAnyDataSayThatThereIsNone(t *testing.T) {
	b := newFiguresBed(t)
	_, key := b.merchant("Loja Nova")
	ctx := browser.New(t)
	browser.Open(ctx, t, b.url+"/analytics#key="+key)
	browser.Until[bool](ctx, t, `document.querySelectorAll('.card[data-empty="true"] .empty').length === 5`)
	browser.Screenshot(ctx, t, "figures-empty")
}

func TestAKeyThatIsNotKnownOpensNoFigures(t *testing.T) {
	b := newFiguresBed(t)
	ctx := browser.New(t)
	browser.Allow(ctx, "status of 401")
	browser.Open(ctx, t, b.url+"/analytics#key=wb_other")
	browser.Until[bool](ctx, t, `document.querySelector("[role=alert]")?.textContent !== ""`)
}

// delivered is an order of twelve minutes.
func (b *figuresBed) delivered(tenant uuid.UUID, created time.Time, late bool) {
	b.t.Helper()
	id, promised := uuid.New(), created.Add(30*time.Minute)
	if late {
		promised = created.Add(5 * time.Minute)
	}
	b.write(
		b.happened(tenant, created, contracts.OrderCreated{OrderID: id, Version: 1, Currency: "BRL", PromisedAt: &promised}),
		b.happened(tenant, created.Add(time.Minute), contracts.OrderStatusChanged{OrderID: id, Version: 2, From: "CREATED", To: "ASSIGNED", Actor: "SYSTEM"}),
		b.happened(tenant, created.Add(12*time.Minute), contracts.OrderStatusChanged{OrderID: id, Version: 3, From: "ASSIGNED", To: "DELIVERED", Actor: "SYSTEM"}),
	)
}

func TestModulesOfTheFigures(t *testing.T) {
	_, url := serve(t)
	ctx := browser.New(t)
	browser.Open(ctx, t, url+"/unit.html")
	for claim, script := range map[string]string{
		"the figures have the same words in both languages, with the same places": `
		const { words: { en, pt } } = await import("/assets/js/analytics-words.js");
		const places = (s) => JSON.stringify([...new Set(s.match(/\{\w+\}/g))].sort());
		for (const key of new Set([...Object.keys(en), ...Object.keys(pt)])) {
			if (!en[key] || !pt[key]) wrong.push("missing: " + key);
			else if (places(en[key]) !== places(pt[key])) wrong.push("places differ: " + key);
		}`,
		"the desk has one name in Portuguese": `
		await import("/assets/js/analytics-words.js");
		const { strings: { en, pt } } = await import("/assets/js/strings.js");
		for (const key of Object.keys(en)) {
			if (/balcão/i.test(pt[key])) wrong.push(key + ": " + pt[key]);
			if (/\bdesk\b/i.test(en[key]) && /\.desk(\.label)?$/.test(key) && !/painel/i.test(pt[key])) wrong.push(key + ": " + pt[key]);
		}`,
		"a duration says its seconds, in either language": `
		const { duration } = await import("/assets/js/analytics-charts.js");
		const { translator } = await import("/assets/js/i18n.js");
		await import("/assets/js/analytics-words.js");
		for (const [ms, en, pt] of [[0, "0 s", "0 s"], [40, "0.04 s", "0,04 s"], [317, "0.3 s", "0,3 s"], [1000, "1 s", "1 s"], [59_960, "1 min", "1 min"], [143_000, "2 min 23 s", "2 min 23 s"],
			[720_000, "12 min", "12 min"], [3_599_600, "1 h 00", "1 h 00"], [5_400_000, "1 h 30", "1 h 30"], [3 * 86_400_000, "3 d", "3 d"]])
			for (const [language, want] of [["en", en], ["pt", pt]]) {
				const got = duration(translator(language), ms).replaceAll("\u00a0", " ");
				if (got !== want) wrong.push(language + " " + ms + " ms: " + got);
			}`,
		"an axis has few ticks in steps that people count in, and holds every value": `
		const { ticks } = await import("/assets/js/chart-scale.js");
		const cases = { count: [[0], [1], [7, 3], [1234]], duration: [[45000], [3600000, 100], [90 * 86400000]], share: [[0.01], [0.4], [1]], money: [[50], [123456, -4000]] };
		for (const [unit, all] of Object.entries(cases)) for (const values of all) {
			const got = ticks(unit, values);
			if (got.length < 2 || got.length > 9 || got.at(-1) < Math.max(...values) || got[0] > Math.min(0, ...values)) wrong.push(unit + " " + values + ": " + got);
		}`,
		"a line has a gap where a value is missing": `
		const { stretches } = await import("/assets/js/chart-scale.js");
		if (JSON.stringify(stretches([null, 1, 2, undefined, 0])) !== "[[[1,1],[2,2]],[[4,0]]]") wrong.push(JSON.stringify(stretches([null, 1, 2, undefined, 0])));`,
	} {
		t.Run(claim, func(t *testing.T) {
			for _, fault := range browser.Eval[[]string](ctx, t, `(async () => { const wrong = []; `+script+`; return wrong; })()`) {
				t.Error(fault)
			}
		})
	}
}
