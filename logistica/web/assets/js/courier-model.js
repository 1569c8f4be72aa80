// What the courier's page knows, apart from how it looks: the courier, their
// orders, and what they asked for that is not done yet.
//
// A phone loses its network in every lift. A step that got no answer may have
// been taken all the same, so it is never just sent again: the orders are read
// first, and only one that stands where it stood is moved once more, with the
// version it had. So a step is taken once however often it is sent.
import { Problem } from "./api.js";

export const DECLINE = "DECLINE";

const again = 3000; // ms between two tries of a step without an answer

// What a step may meet that no answer of the API names.
export const MOVED = "moved"; // the order went another way meanwhile
export const UNSURE = "unsure"; // a code was sent, and whether it counted is not known

export class CourierModel {
  constructor(api, { changed = () => {}, said = () => {}, pause = again } = {}) {
    Object.assign(this, { api, changed, said, pause });
    this.self = null;
    this.jobs = [];
    this.acts = new Map(); // order id -> step under way, or refused
    this.duty = null; // change of duty under way, or refused
    this.problem = null; // of the last reading
    this.readAt = null; // when an answer last came
    this.waiting = new Set(); // what to call when a try may succeed again
    this.asked = 0;
    this.answered = 0;
  }

  // refresh reads everything anew and tells whether it could.
  async refresh() {
    const turn = ++this.asked;
    try {
      const [self, { jobs }] = await Promise.all([this.api.self(), this.api.jobs()]);
      if (turn > this.answered) this.#take(turn, self, jobs);
      return true;
    } catch (problem) {
      if (turn > this.answered) this.problem = asProblem(problem);
      return false;
    } finally {
      this.changed();
    }
  }

  #take(turn, self, jobs) {
    const known = new Set(this.jobs.map((j) => j.id));
    const first = !this.self;
    Object.assign(this, { answered: turn, self, jobs, problem: null, readAt: new Date() });
    for (const id of this.acts.keys()) if (settled(this.acts.get(id), this.job(id))) this.acts.delete(id);
    const offer = jobs.find((j) => j.state === "ASSIGNED" && !known.has(j.id));
    if (offer && !first) this.said({ what: "offer" });
  }

  job(id) {
    return this.jobs.find((j) => j.id === id);
  }

  // --- duty

  async setDuty(to) {
    if (!this.self || this.duty?.status === "sending") return;
    this.#setDuty({ to, status: "sending" });
    try {
      this.self = await this.api.duty(to, this.self.version);
      this.#setDuty(null);
      this.said({ what: "duty", state: this.self.state });
    } catch (problem) {
      await this.refresh();
      const reached = this.self.state === to; // an earlier press, or another device
      this.#setDuty(reached ? null : { to, status: "refused", problem: asProblem(problem) });
    }
    await this.refresh(); // who is available may have been given an order at once
  }

  #setDuty(duty) {
    this.duty = duty;
    this.changed();
  }

  // --- steps of an order

  async act(id, to, extra = {}) {
    const job = this.job(id);
    if (!job || busy(this.acts.get(id))) return;
    const act = { to, extra, version: job.version, status: "sending", problem: null };
    this.acts.set(id, act);
    this.changed();
    const problem = await this.#drive(id, act);
    if (this.acts.get(id) !== act) return; // given up
    this.#end(id, act, problem);
    this.changed();
  }

  #end(id, act, problem) {
    if (problem) {
      Object.assign(act, { status: "refused", problem });
      this.said({ what: "refused", problem });
      return;
    }
    // A declined order stays listed until its own module has heard of it.
    if (act.to === DECLINE && this.job(id)) act.status = "declined";
    else this.acts.delete(id);
    this.said({ what: "done", to: act.to });
  }

  // drive tries until there is an answer, or the courier gives up, and returns
  // what went wrong.
  async #drive(id, act) {
    let problem = await this.#try(id, act);
    while (problem && this.acts.get(id) === act) {
      const read = await this.refresh();
      if (read && reached(act, this.job(id))) return null;
      if (!lost(problem)) return problem;
      if (read && this.job(id)?.version !== act.version) return MOVED;
      if (read && act.to === "DELIVERED") return UNSURE; // each code that is sent may cost a try
      await this.#wait(act);
      if (read && this.acts.get(id) === act) problem = await this.#try(id, act);
    }
    return problem;
  }

  async #try(id, act) {
    act.status = "sending";
    this.changed();
    try {
      if (act.to === DECLINE) await this.api.decline(id, act.extra.reason);
      else await this.api.move(id, act.to, act.version, act.extra);
      await this.refresh();
      return null;
    } catch (problem) {
      return asProblem(problem);
    }
  }

  #wait(act) {
    act.status = "waiting";
    this.changed();
    return new Promise((resolve) => {
      const go = () => {
        clearTimeout(timer);
        this.waiting.delete(go);
        resolve();
      };
      const timer = setTimeout(go, this.pause);
      this.waiting.add(go);
    });
  }

  // kick tries at once what waits: the network is back.
  kick() {
    for (const go of [...this.waiting]) go();
  }

  // dismiss forgets a refusal, or gives up a step that waits.
  dismiss(id) {
    if (this.acts.get(id)?.status !== "sending") this.acts.delete(id);
    this.changed();
  }

  dismissDuty() {
    this.#setDuty(null);
  }
}

const busy = (act) => act && act.status !== "refused";

// lost tells the failures after which nobody knows, or nothing was done.
const lost = ({ status }) => status === 0 || status === 429 || status >= 500;

// reached: the step was taken, by whichever try. An order that was delivered or
// given back is listed no more.
function reached(act, job) {
  if (!job) return act.to === "DELIVERED" || act.to === DECLINE;
  return job.state === act.to && job.version > act.version;
}

// settled: a step that nothing is left to tell of.
function settled(act, job) {
  if (act.status === "declined") return !job || job.version !== act.version;
  return act.status === "refused" && !job && act.problem !== MOVED;
}

function asProblem(err) {
  if (err instanceof Problem) return err;
  throw err; // a fault of the page's own must not look like the network's
}
