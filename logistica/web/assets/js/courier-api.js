// What a courier's page asks of the API.
import { Api } from "./api.js";

export class CourierApi {
  constructor(key) {
    this.api = new Api(key);
  }

  self() {
    return this.api.send("GET", "/v1/courier");
  }

  jobs() {
    return this.api.send("GET", "/v1/courier/jobs");
  }

  duty(state, version) {
    return this.api.send("POST", "/v1/courier/status", { state, expected_version: version });
  }

  decline(id, reason) {
    return this.api.send("POST", `${job(id)}/decline`, reason ? { reason } : {});
  }

  move(id, to, version, { code, reason }) {
    return this.api.send("POST", `${job(id)}/moves`, { to, expected_version: version, ...(code && { code }), ...(reason && { reason }) });
  }

  positions(positions) {
    return this.api.send("POST", "/v1/courier/positions", { positions });
  }
}

const job = (id) => `/v1/courier/jobs/${encodeURIComponent(id)}`;
