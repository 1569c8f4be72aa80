// Wanted reads by id orders of which something is not known: one at a time,
// each at most once in a while, so that a flood of events asks the API calmly.
import { Bounded } from "./bounded.js";

export class Wanted {
  constructor(read, { limit = 100, rest = 30_000, now = () => performance.now() } = {}) {
    Object.assign(this, { read, limit, rest, now });
    this.asked = new Bounded(1000); // what was asked for -> when
    this.queue = new Map(); // id -> what for
    this.busy = false;
  }

  // ask has an order read; what it is asked for tells one reason from another.
  ask(id, what = "") {
    const before = this.asked.get(`${id} ${what}`);
    if (this.queue.has(id) || this.queue.size >= this.limit || this.now() - before < this.rest) return;
    this.queue.set(id, what);
    if (!this.busy) this.#work();
  }

  async #work() {
    this.busy = true;
    for (const [id, what] of this.queue) {
      this.asked.set(`${id} ${what}`, this.now());
      await this.read(id).catch(() => {}); // asked again when it is next heard of
      this.queue.delete(id);
    }
    this.busy = false;
  }
}
