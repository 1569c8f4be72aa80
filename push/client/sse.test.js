import assert from "node:assert/strict";
import http from "node:http";
import { test } from "node:test";
import { Parser, Refused, subscribe } from "./sse.js";

// serve answers the n-th request with the n-th of answers, the last for good.
async function serve(t, ...answers) {
  const requests = [];
  const server = http.createServer((req, res) => {
    const answer = answers[Math.min(requests.length, answers.length - 1)];
    requests.push(req);
    answer(res, req);
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${server.address().port}/`, requests };
}

const says = (text, { end = true } = {}) => (res) => {
  res.writeHead(200, { "Content-Type": "text/event-stream" });
  res.write(text);
  if (end) res.end();
};
const moved = (id, n) => `event: moved\ndata: {"id":"${n}"}\nid: ${id}\n\n`;

test("a stream split anywhere is read the same", () => {
  const text = "\ufeff: hb\r\nretry: 7\r\n\r\nevent: a\r\ndata: 1\r\ndata: 2\r\nid: x\r\n\r\ndata:3\n\nid: y\n\nid: n\0\ndata\n\ndata: lost";
  for (let size = 1; size <= text.length; size++) {
    const got = [];
    const p = new Parser((m) => got.push(m), (ms) => got.push(ms));
    for (let i = 0; i < text.length; i += size) p.push(text.slice(i, i + size));
    assert.deepEqual(got, [
      7,
      { id: "x", event: "a", data: "1\n2" },
      { id: "x", event: "message", data: "3" },
      { id: "y", event: "message", data: "" },
    ], `pieces of ${size}`);
  }
});

test("a lost connection is resumed behind the last id, also one without a message", async (t) => {
  const { url, requests } = await serve(t,
    says("retry: 1\n\nevent: ready\ndata: {}\nid: c0\n\n" + moved("c1", 1)),
    says(moved("c1b", 1) + ": hb\nid: c2\n\n"),
    says(moved("c3", 2), { end: false }));
  const stop = new AbortController();
  const got = [], resets = [];
  const headers = { Authorization: "Bearer secret" };
  await subscribe({
    url, headers, signal: stop.signal, onReset: (kind) => resets.push(kind),
    onEvent: (m) => { got.push(m); if (m.data.id === "2") stop.abort(); },
  });
  assert.deepEqual(got.map((m) => [m.id, m.event, m.data.id]), [["c1", "moved", "1"], ["c3", "moved", "2"]]);
  assert.deepEqual(resets, ["ready"]);
  assert.deepEqual(requests.map((r) => r.headers["last-event-id"]), [undefined, "c1", "c2"]);
  assert.ok(requests.every((r) => r.headers.authorization === headers.Authorization));
});

test("reset asks for a snapshot and moves the cursor", async (t) => {
  const { url, requests } = await serve(t,
    says('retry: 1\n\nevent: reset\ndata: {"reason":"expired"}\nid: c9\n\n'), says(moved("c10", 1)));
  const stop = new AbortController();
  const resets = [];
  await subscribe({ url, lastEventId: "old", signal: stop.signal, onReset: (k) => resets.push(k), onEvent: () => stop.abort() });
  assert.deepEqual(resets, ["reset"]);
  assert.deepEqual(requests.map((r) => r.headers["last-event-id"]), ["old", "c9"]);
});

test("503 is tried again, not before Retry-After; 401 is final", async (t) => {
  const refuse = (status, headers = {}) => (res) => { res.writeHead(status, headers); res.end(); };
  const { url, requests } = await serve(t, refuse(503, { "Retry-After": "1" }), refuse(401));
  const states = [];
  const begun = Date.now();
  await assert.rejects(subscribe({ url, onEvent() {}, onState: (s) => states.push(s) }),
    (err) => err instanceof Refused && err.status === 401);
  assert.ok(Date.now() - begun >= 990);
  assert.equal(requests.length, 2);
  assert.deepEqual(states, ["connecting", "waiting", "connecting", "closed"]);
});

test("a connection that says nothing is given up", async (t) => {
  const { url, requests } = await serve(t, says("retry: 1\n\n", { end: false }), says(moved("c", 1)));
  const stop = new AbortController();
  await subscribe({ url, silence: 50, signal: stop.signal, onEvent: () => stop.abort() });
  assert.ok(requests.length >= 2); // a slow machine says nothing for longer than that itself
});

test("abort ends a wait and a read at once", async (t) => {
  const { url } = await serve(t, says("retry: 60000\n\n"), says("", { end: false }));
  for (const state of ["waiting", "open"]) {
    const stop = new AbortController();
    await subscribe({ url, signal: stop.signal, onEvent() {}, onState: (s) => s === state && stop.abort() });
  }
});
