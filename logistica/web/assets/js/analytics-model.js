// What the page of figures knows: each as last read, for whom and how far back.
import { Problem } from "./api.js";

export class FiguresModel {
  constructor(api, { changed = () => {} } = {}) {
    Object.assign(this, { api, changed });
    this.hours = 24;
    this.tenant = ""; // all, or the key's own
    this.admin = false;
    this.orders = this.deliveries = this.fees = this.couriers = this.tenants = null;
    this.problem = null; // of the last reading
    this.readAt = null;
    this.turn = 0;
  }

  choose({ hours = this.hours, tenant = this.tenant }) {
    Object.assign(this, { hours, tenant });
    return this.refresh();
  }

  // refresh reads everything; of two readings under way the later one counts.
  async refresh() {
    const turn = ++this.turn;
    const { api, hours, tenant } = this;
    try {
      const orders = await api.orders(hours, tenant);
      const admin = orders.key_scope === "admin";
      const [deliveries, fees, couriers, tenants] = await Promise.all([
        api.deliveries(hours, tenant), api.fees(tenant),
        admin ? api.couriers(hours) : null, admin ? api.tenants(hours) : null,
      ]);
      if (turn !== this.turn) return;
      Object.assign(this, {
        admin, orders, deliveries, fees: fees.days, couriers: couriers?.hours ?? null, tenants: tenants?.tenants ?? null,
        problem: null, readAt: new Date(),
      });
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      if (turn === this.turn) this.problem = problem;
    } finally {
      this.changed();
    }
  }
}
