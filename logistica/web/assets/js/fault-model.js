// What the fault panel knows: how each fault is set, as last read, and what was
// asked for and is not answered yet.
import { Problem } from "./api.js";

export class FaultModel {
  constructor(api, { changed = () => {}, said = () => {} } = {}) {
    Object.assign(this, { api, changed, said });
    this.faults = null;
    this.problem = null; // of the last reading
    this.readAt = null;
    this.acts = new Map(); // fault -> what is under way, or refused
    this.turn = 0;
  }

  async refresh() {
    const turn = ++this.turn;
    try {
      const { faults } = await this.api.list();
      if (turn !== this.turn) return; // a newer question is under way: others set faults too
      Object.assign(this, { faults, problem: null, readAt: new Date() });
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      if (turn === this.turn) this.problem = problem;
    } finally {
      this.changed();
    }
  }

  on() {
    return (this.faults ?? []).filter((f) => f.value > 0);
  }

  set(name, value, last) {
    return this.#do(name, "set", () => this.api.set(name, value, last));
  }

  clear(name) {
    return this.#do(name, "cleared", () => this.api.clear(name));
  }

  // clearAll clears what is on one by one, and goes on where one is refused.
  async clearAll() {
    const done = [];
    for (const { name } of this.on()) done.push(await this.#do(name, "", () => this.api.clear(name)));
    if (done.every(Boolean)) this.said({ what: "all" });
  }

  async #do(name, what, ask) {
    if (this.acts.get(name)?.status === "sending") return false;
    this.acts.set(name, { status: "sending" });
    this.changed();
    let ok = true;
    try {
      await ask();
      this.acts.delete(name);
      if (what) this.said({ what, name });
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      ok = false;
      this.acts.set(name, { status: "refused", problem });
    }
    await this.refresh();
    return ok;
  }
}
