package web

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/test/browser"
)

// The modules without a page are tried where they run. Each claim is an
// expression over them that gives the list of what is wrong.
func TestModules(t *testing.T) {
	_, url := serve(t)
	ctx := browser.New(t)
	browser.Open(ctx, t, url+"/unit.html")
	for claim, script := range claims {
		t.Run(claim, func(t *testing.T) {
			for _, fault := range browser.Eval[[]string](ctx, t, `(async () => { const wrong = []; `+script+`; return wrong; })()`) {
				t.Error(fault)
			}
		})
	}
}

// offered is what the API lets a merchant do, as a script's object.
func offered() string {
	text, err := json.Marshal(allowed)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// told is every event of a merchant's, as a script's array: positions are not
// handed over, and a courier's duty is the platform's.
func told() string {
	var all []string
	for _, c := range contracts.All() {
		if !strings.HasSuffix(c.Type, ".CourierLocationUpdated") && !strings.HasSuffix(c.Type, ".CourierStatusChanged") {
			all = append(all, c.Type)
		}
	}
	slices.Sort(all)
	text, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return string(text)
}

var claims = map[string]string{
	"both languages have the same strings with the same places": `
		const { strings: { en, pt } } = await import("/assets/js/strings.js");
		const places = (s) => JSON.stringify([...new Set(s.match(/\{\w+\}/g))].sort());
		for (const key of new Set([...Object.keys(en), ...Object.keys(pt)])) {
			if (!en[key] || !pt[key]) wrong.push("missing: " + key);
			else if (places(en[key]) !== places(pt[key])) wrong.push("places differ: " + key);
			else if (en[key].includes("|") !== pt[key].includes("|")) wrong.push("plural differs: " + key);
		}`,

	"every state has its words": `
		const { states } = await import("/assets/js/states.js");
		const { strings } = await import("/assets/js/strings.js");
		for (const s of states) for (const kind of ["state", "do", "for"]) if (!strings.en[kind + "." + s]) wrong.push(kind + "." + s);`,

	"until the API has spoken the desk offers what it would": `
		const { allowedFrom, states } = await import("/assets/js/states.js");
		const api = ` + offered() + `;
		for (const s of states) if ([...allowedFrom(s)].sort().join() !== [...(api[s] ?? [])].sort().join()) wrong.push(s + " offers " + allowedFrom(s));`,

	"all that a store is told of can be chosen by its words": `
		const { orders, rest, split, join } = await import("/assets/js/hook-types.js");
		const { strings } = await import("/assets/js/strings.js");
		const offered = [...orders, ...rest], told = ` + told() + `;
		if ([...offered].sort().join() !== told.join()) wrong.push(offered + " of " + told);
		for (const type of offered) if (!strings.en["hook.type." + type.split(".").at(-1)]) wrong.push("no words: " + type);
		const chosen = [offered[2], "a.*", "b.>"];
		if (join(split(chosen)).join() !== chosen.join() || join({ ticked: [], more: " a , b;a " }).join() !== "a,b") wrong.push("lost in the form: " + join(split(chosen)));`,

	"a pattern is matched as the server does, and is deaf where no known type is meant": `
		const { deaf } = await import("/assets/js/hook-types.js");
		const heard = ["logistica.orders.OrderCreated", "logistica.orders.*", "logistica.*.OrderCreated", "*.*.*", "logistica.>", "logistica.orders.>", "*.>", ">"];
		const none = ["orders.>", "order.created", "logistica.orders", "logistica.orders.OrderCreated.>", "logistica.orders.OrderCreate", "*", "*.*", "*.*.*.*", "logistica.orders.OrderCreated.x", "webhook.ping"];
		if (deaf([...heard, ...none]).join() !== none.join()) wrong.push("deaf: " + deaf([...heard, ...none]));
		if (deaf(null).length || deaf([]).length) wrong.push("no choice is all of them");`,

	"the word for an endpoint or a delivery is of how it does now": `
		const { stateOf, outcome, latest } = await import("/assets/js/hook-model.js");
		const now = Date.UTC(2026, 0, 2), at = (h) => new Date(now + h * 3_600_000).toISOString();
		for (const [e, want] of [[{ state: "enabled", failures: 0 }, "active"], [{ state: "enabled", failures: 2 }, "failing"], [{ state: "enabled", failures: 5, open_until: at(1) }, "open"],
			[{ state: "enabled", failures: 5, open_until: at(-1) }, "failing"], [{ state: "disabled", failures: 5, open_until: at(1) }, "disabled"]])
			if (stateOf(e, now) !== want) wrong.push(JSON.stringify(e) + " is " + stateOf(e, now));
		for (const [d, want] of [[{ state: "pending", attempts: 0 }, "pending"], [{ state: "pending", attempts: 1 }, "retrying"], [{ state: "failed", attempts: 9 }, "failed"]])
			if (outcome(d) !== want) wrong.push(JSON.stringify(d) + " is " + outcome(d));
		const last = latest([{ state: "delivered", attempts: 1, at: "2026-01-01T10:00:00.5Z" }, { state: "delivered", attempts: 1, at: "2026-01-01T08:00:00-03:00" }, { state: "pending", attempts: 1, at: at(0) }]);
		if (last.delivered !== "2026-01-01T08:00:00-03:00" || last.failed !== at(0)) wrong.push(JSON.stringify(last));`,

	"what waits is not called before its endpoint is": `
		const { nextAt } = await import("/assets/js/hook-model.js");
		const at = (h) => new Date(Date.UTC(2026, 0, 2, h)).toISOString();
		for (const [next, until, want] of [[at(1), null, at(1)], [at(1), undefined, at(1)], [at(1), at(3), at(3)], [at(4), at(3), at(4)]])
			if (nextAt({ next_at: next }, until).toISOString() !== want) wrong.push(next + " until " + until + " is " + nextAt({ next_at: next }, until).toISOString());`,

	"what came while one is read waits, and more than a page begins the log anew": `
		const { HookLog } = await import("/assets/js/hook-log.js");
		const ids = (from, to) => Array.from({ length: from - to + 1 }, (_, i) => String(from - i).padStart(4, "0"));
		let newest = 3, holding = false, moved = null;
		const of = (event) => ({ event, state: moved === event ? "delivered" : "failed", attempts: 1 });
		const api = {
			deliveries: async (_, { state, before, limit }) => ({ deliveries: ids(newest, 1).filter((e) => (!before || e < before) && (!state || of(e).state === state)).slice(0, limit).map(of) }),
			delivery: async (_, event) => of(event), backlog: async () => ({ pending: 0, failed: 0 }),
		};
		const log = new HookLog(api, "e", { holds: () => holding });
		const is = (what, want) => log.rows.join() === want.join() || wrong.push(what + ": " + log.rows);
		await log.refresh(); is("first", ids(3, 1));
		newest = 4; await log.refresh(); is("let in", ids(4, 1));
		holding = true; newest = 6; await log.refresh(); is("held", ids(4, 1));
		if (log.fresh.join() !== "0006,0005") wrong.push("waiting: " + log.fresh);
		newest = 90; await log.refresh(); newest = 150; await log.refresh();
		if (log.fresh.length !== 50 || log.known.size !== 54) wrong.push("grows while held: " + log.known.size);
		newest = 6; await log.refresh();
		log.show(); is("shown", ids(6, 1));
		newest = 200; await log.refresh(); log.show(); is("after a gap", ids(200, 151));
		await log.earlier(); is("earlier", ids(200, 101));
		await log.select("failed"); moved = "0199"; await log.refresh();
		is("what left the filter stays", ids(200, 151));
		if (log.known.get("0199").state !== "delivered") wrong.push("and is not read anew");
		const empty = new HookLog(api, "e");
		newest = 0; await empty.refresh(); newest = 60; await empty.refresh();
		if (empty.rows.length !== 50 || !empty.more) wrong.push("the beginning cannot be reached");
		newest = 200; await log.stop(); newest = 300; await log.refresh(); is("stopped", ids(200, 151));`,

	"the event of an assignment takes the row to its version": `
		const { fromEvent, merge } = await import("/assets/js/order.js");
		const event = (type, sequence, data) => fromEvent({ type: "logistica.orders." + type, subject: "o", sequence, data });
		const row = merge(event("OrderStatusChanged", 3, { to: "ASSIGNED" }), event("OrderAssigned", 4, {}));
		if (row.version !== 4 || row.state !== "ASSIGNED") wrong.push(JSON.stringify(row));`,

	"language is the stored one, else the first known, else English": `
		const { detect } = await import("/assets/js/i18n.js");
		for (const [stored, wanted, want] of [["pt", ["en"], "pt"], [null, ["fr", "pt-PT"], "pt"], ["xx", ["en-GB"], "en"], [null, ["ja"], "en"], [null, undefined, "en"]])
			if (detect(stored, wanted) !== want) wrong.push(stored + " " + wanted + " = " + detect(stored, wanted));`,

	"prices are read in both notations and nothing else": `
		const { cents } = await import("/assets/js/format.js");
		for (const [text, want] of [["12,50", 1250], ["12.5", 1250], [" 7 ", 700], ["0,29", 29], ["1.005", null], ["1.234,50", null], ["-1", null], ["", null], ["1e3", null], ["abc", null], ["12345678", null]])
			if (cents(text) !== want) wrong.push(text + " = " + cents(text));`,

	"times are read as text and as microseconds": `
		const { instant } = await import("/assets/js/format.js");
		const want = Date.UTC(2026, 0, 2, 3, 4, 5, 6);
		for (const v of ["2026-01-02T03:04:05.006Z", "2026-01-02T00:04:05.006-03:00", want, want * 1000]) if (instant(v)?.getTime() !== want) wrong.push(String(v));
		for (const v of [null, undefined, "", "soon"]) if (instant(v) !== null) wrong.push(String(v));`,

	// Any interleaving of answers and events ends in the newest state, with
	// the API's details, and never steps back on the way.
	"merge ends the same in every order of arrival": `
		const { fromApi, fromEvent, merge } = await import("/assets/js/order.js");
		const event = (type, sequence, data) => fromEvent({ type: "logistica.orders." + type, subject: "o", sequence, time: "2026-01-01T00:00:0" + sequence + "Z", data });
		const api = (version, state) => fromApi({ id: "o", version, state, tracking_token: "t", items: [{ name: "full" }], created_at: "2026-01-01T00:00:00Z", allowed: ["A" + version] });
		const all = [event("OrderCreated", 1, { items: [{ name: "coarse" }] }), event("OrderStatusChanged", 2, { to: "ASSIGNING" }), event("OrderStatusChanged", 3, { to: "ASSIGNED" }), api(1, "CREATED"), api(2, "ASSIGNING")];
		const walk = (left, row) => {
			if (!left.length && (row.state !== "ASSIGNED" || row.version !== 3 || row.tracking_token !== "t" || row.items[0].name !== "full" || row.seen !== 3 || row.allowed))
				wrong.push(JSON.stringify(row));
			left.forEach((next, i) => {
				const merged = merge(row, next);
				if (row && merged.version < row.version) wrong.push("back from " + row.version);
				walk(left.toSpliced(i, 1), merged);
			});
		};
		walk(all, undefined);
		wrong.splice(5);`,

	// Events of an order come in their order, the API's answers at any moment.
	"an order has the courier of its present attempt, whenever the API answers": `
		const { fromApi, fromEvent, merge } = await import("/assets/js/order.js");
		const event = (type, sequence, data) => fromEvent({ type: "logistica.orders." + type, subject: "o", sequence, time: "2026-01-01T00:00:0" + sequence + "Z", data });
		const api = (version, state, more) => fromApi({ id: "o", version, state, items: [], created_at: "2026-01-01T00:00:00Z", ...more });
		const events = [
			event("OrderAssigned", 4, { courier_id: "a", attempt: 1, delivery_eta: "2026-01-01T01:00:00Z" }),
			event("OrderStatusChanged", 5, { to: "CREATED", attempt: 2 }),
			event("OrderAssigned", 8, { courier_id: "b", attempt: 2, delivery_eta: "2026-01-01T02:00:00Z" }),
			event("OrderStatusChanged", 9, { to: "PICKUP_ONGOING" }),
		];
		const answers = [api(4, "ASSIGNED", { attempt: 1, courier: { id: "a" }, delivery_eta: "2026-01-01T01:00:00Z", fee: {} }), api(5, "CREATED", { attempt: 2 })];
		const walk = (events, answers, row) => {
			if (events.length + answers.length === 0 && (row.state !== "PICKUP_ONGOING" || row.courier?.id !== "b" || row.attempt !== 2 || row.delivery_eta !== "2026-01-01T02:00:00Z"))
				wrong.push(JSON.stringify(row));
			if (events.length) walk(events.slice(1), answers, merge(row, events[0]));
			answers.forEach((next, i) => walk(events, answers.toSpliced(i, 1), merge(row, next)));
		};
		walk(events, answers, undefined);
		const back = [events[0], answers[0], events[1]].reduce(merge, undefined);
		if (back.courier || back.fee || back.delivery_eta || back.attempt !== 2) wrong.push("still carried: " + JSON.stringify(back));
		wrong.splice(5);`,

	"the map holds who is out, by the newest position, and forgets who is not": `
		const { FleetModel, located } = await import("/assets/js/fleet-model.js");
		const asked = [];
		const fleet = new FleetModel({ read: (id) => asked.push(id), locate: async () => null, limit: 2 });
		const order = (id, state, version = 1) => ({ id, version, state, full: true, seen: 0, courier: { id: "c" }, created_at: "2026-01-01T00:00:00Z" });
		const fix = (id, s, courier_id = "c") => fleet.hear({ type: located, data: { order_id: id, courier_id, lat: s, lng: 0, fix_time: "2026-01-01T00:00:0" + s + "Z" } });
		fix("x", 1);
		if (asked.join() !== "x") wrong.push("asked for " + asked);
		fleet.take(order("x", "ASSIGNED"));
		fix("x", 3);
		fix("x", 2);
		if (fleet.position(order("x")).lat !== 3) wrong.push("went back to " + fleet.position(order("x")).lat);
		fix("x", 4, "who had it before");
		if (fleet.position(order("x"))) wrong.push("shows another courier");
		fleet.take({ id: "x", version: 2, state: "DELIVERED", seen: 2 });
		if (fleet.rides().length || fleet.fixes.size) wrong.push("kept what ended");
		for (const id of ["still", "home"]) { fleet.take(order(id, "PICKED_UP")); fix(id, 1); }
		const known = fleet.known();
		fix("still", 2);
		fleet.forget(known);
		if (fleet.rides().map((o) => o.id).join() !== "still") wrong.push("after a gap: " + fleet.rides().map((o) => o.id));
		fleet.take({ id: "still", version: 2, state: "DELIVERED", seen: 2 });
		for (const id of "abc") fleet.take(order(id, "PICKED_UP"));
		fix("d", 1);
		if (fleet.rides().length !== 2 || asked.includes("d")) wrong.push("unbounded: " + asked);
		if (fleet.hear({ type: "logistica.orders.OrderCreated", subject: "e" })) wrong.push("took an order for a position");`,

	"what is not known is read calmly: one at a time, and not again at once": `
		const { Wanted } = await import("/assets/js/wanted.js");
		let now = 0, open = 0, most = 0;
		const read = [];
		const wanted = new Wanted(async (id) => {
			read.push(id);
			most = Math.max(most, ++open);
			await null;
			open--;
			if (id === "b") throw new Error("gone");
		}, { limit: 3, now: () => now });
		const idle = async () => { while (wanted.busy) await null; };
		for (const id of ["a", "a", "b", "c", "d"]) wanted.ask(id);
		await idle();
		wanted.ask("a");
		wanted.ask("a", "its second courier");
		await idle();
		now = 31_000;
		wanted.ask("b");
		await idle();
		if (read.join() !== "a,b,c,a,b" || most !== 1) wrong.push(read + " " + most);`,

	"an order never counts as older than itself": `
		const { newestFirst } = await import("/assets/js/order.js");
		const o = { id: "a", created_at: "2026-01-01T00:00:00Z" };
		if (newestFirst(o, { ...o }) !== 0) wrong.push("not equal to itself");`,

	"a tracking event that was seen changes nothing": `
		const { step, newer } = await import("/assets/js/track-model.js");
		const o = { version: 3, state: "ASSIGNED", timeline: [] };
		if (step(o, { sequence: 3, data: { to: "CREATED" } }) !== o) wrong.push("repeated");
		if (step(o, { sequence: 4, data: {} }) !== o) wrong.push("without a state");
		if (newer({ version: 4 }, o).version !== 4) wrong.push("set back by an old snapshot");`,

	"a full outbox is told in the visitor's language, other refusals in the server's words": `
		const { explain, translator } = await import("/assets/js/i18n.js");
		const { Problem } = await import("/assets/js/api.js");
		const full = new Problem(429, { type: "/docs#outbox-full", detail: "Events are not carried away" });
		for (const [language, want] of [["en", "catching up"], ["pt", "recuperando o atraso"]])
			if (!explain(translator(language), full).includes(want)) wrong.push(language + ": " + explain(translator(language), full));
		if (explain(translator("pt"), new Problem(422, { detail: "no such street" })) !== "no such street") wrong.push("lost the server's words");`,

	"memory for what is not shown is bounded": `
		const { Bounded } = await import("/assets/js/bounded.js");
		const b = new Bounded(3);
		for (let i = 0; i < 10; i++) b.set(i, i);
		if ([...b.keys()].join() !== "7,8,9") wrong.push([...b.keys()].join());`,
}
