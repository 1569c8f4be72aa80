// What the page of webhooks knows of the endpoints: each as last read, how its
// latest deliveries went, and what was asked for and refused.
import { Problem } from "./api.js";

export class HookModel {
  constructor(api, { changed = () => {}, said = () => {} } = {}) {
    Object.assign(this, { api, changed, said });
    this.endpoints = null;
    this.recent = new Map(); // endpoint -> its latest deliveries, newest first
    this.problem = null; // of the last reading
    this.readAt = null;
    this.refused = null; // of the last act: {id, problem}
    this.busy = new Set();
    this.turn = 0;
    this.followed = null; // called after each reading
  }

  find(id) {
    return this.endpoints?.find((e) => e.id === id);
  }

  async refresh() {
    const turn = ++this.turn;
    try {
      const [{ endpoints }, { recent }] = await Promise.all([this.api.list(), this.api.recent()]);
      if (turn !== this.turn) return; // a newer question is under way
      const by = new Map(recent.map((r) => [r.endpoint, r.deliveries]));
      Object.assign(this, { endpoints, recent: by, problem: null, readAt: new Date() });
      this.followed?.();
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      if (turn === this.turn) this.problem = problem;
    } finally {
      this.changed();
    }
  }

  // create and update throw what the form has to show.
  async create(body) {
    const made = await this.api.create(body);
    await this.refresh();
    this.said({ what: "created" });
    return made;
  }

  async update(id, body) {
    await this.api.update(id, body);
    await this.refresh();
    this.said({ what: "saved" });
  }

  enable(id) {
    return this.#do(id, "enabled", () => this.api.enable(id));
  }

  // retry has one called at once that is left alone: enabled anew, its failures
  // are forgotten.
  retry(id) {
    return this.#do(id, "retried", () => this.api.enable(id));
  }

  disable(id, reason) {
    return this.#do(id, "disabled", () => this.api.disable(id, reason));
  }

  // remove gives whether it is gone.
  remove(id) {
    return this.#do(id, "deleted", () => this.api.remove(id));
  }

  // rotate gives the secrets that sign from now on, the new one first.
  async rotate(id, overlap) {
    let secrets = null;
    await this.#do(id, "", async () => ({ secrets } = await this.api.rotate(id, overlap)));
    return secrets;
  }

  dismiss() {
    this.refused = null;
    this.changed();
  }

  async #do(id, what, ask) {
    if (this.busy.has(id)) return false;
    this.busy.add(id);
    this.refused = null;
    this.changed();
    let ok = true;
    try {
      await ask();
      if (what) this.said({ what });
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      ok = false;
      this.refused = { id, problem };
    }
    this.busy.delete(id);
    await this.refresh();
    return ok;
  }
}

// stateOf is how an endpoint does, in a word.
export function stateOf(e, now = Date.now()) {
  if (e.state === "disabled") return "disabled";
  if (e.open_until && new Date(e.open_until).getTime() > now) return "open";
  return e.failures > 0 ? "failing" : "active";
}

export const tones = { active: "done", failing: "wait", open: "bad", disabled: "off" };

// outcome is how far a delivery is, in a word: one that failed and is tried again
// is not what merely waits.
export function outcome({ state, attempts }) {
  return state === "pending" && attempts > 0 ? "retrying" : state;
}

export const outcomeTones = { pending: "new", retrying: "wait", delivered: "done", failed: "bad" };

// nextAt is when a pending delivery is attempted next: not before its endpoint is
// called again, which is left alone until then after failures.
export function nextAt({ next_at: next }, until = null) {
  return new Date(Math.max(new Date(next).getTime(), until ? new Date(until).getTime() : 0));
}

// latest is when something last succeeded and last failed, of what is at hand.
export function latest(deliveries = []) {
  const max = (list) => list.reduce((last, d) => (last && new Date(last) >= new Date(d.at) ? last : d.at), "");
  return {
    delivered: max(deliveries.filter((d) => d.state === "delivered")),
    failed: max(deliveries.filter((d) => ["failed", "retrying"].includes(outcome(d)))),
  };
}
