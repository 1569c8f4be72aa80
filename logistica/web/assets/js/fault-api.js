// What the fault panel asks of the API.
import { Api } from "./api.js";

export class FaultApi {
  constructor(key) {
    this.api = new Api(key);
  }

  list() {
    return this.api.send("GET", "/v1/faults");
  }

  // set breaks something: for a time such as 5m, or without an end if empty.
  set(name, value, last) {
    return this.api.send("PUT", fault(name), { value, ...(last && { for: last }) });
  }

  clear(name) {
    return this.api.send("DELETE", fault(name));
  }
}

const fault = (name) => `/v1/faults/${encodeURIComponent(name)}`;
