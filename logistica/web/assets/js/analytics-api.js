// What the figures ask of the API.
import { Api } from "./api.js";

export class FiguresApi {
  constructor(key) {
    this.api = new Api(key);
  }

  orders(hours, tenant) {
    return this.#get("orders", { hours, tenant });
  }

  deliveries(hours, tenant) {
    return this.#get("deliveries", { hours, tenant });
  }

  fees(tenant) {
    return this.#get("fees", { days: 30, tenant });
  }

  couriers(hours) {
    return this.#get("couriers", { hours });
  }

  tenants(hours) {
    return this.#get("tenants", { hours });
  }

  #get(what, values) {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(values)) if (value) query.set(name, String(value));
    return this.api.send("GET", `/v1/analytics/${what}?${query}`);
  }
}
