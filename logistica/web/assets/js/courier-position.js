// Shares where the phone is, while its owner is on duty and has agreed. It says
// what is so, not what was wished: a position counts as shared when the server
// has taken it.
const period = 5000; // ms between two reports
const most = 100; // positions in a report; of more the oldest are left out
const still = 15_000; // ms without a new position until one is asked for: a parked phone tells none by itself

const options = { enableHighAccuracy: true, maximumAge: 0, timeout: 30_000 };

export class PositionShare {
  constructor(send, { changed = () => {}, sensor = navigator.geolocation, secure = window.isSecureContext, storage = localStorage, every = period } = {}) {
    Object.assign(this, { send, changed, sensor, secure, storage, every });
    this.agreed = this.#recall("waybill.share") === "yes";
    this.onDuty = false;
    this.state = "off";
    this.sentAt = null;
    this.accuracy = null;
    this.buffer = [];
    this.lastFix = 0;
    this.watch = null;
    this.timer = 0;
    this.sending = false;
  }

  agree(yes) {
    this.agreed = yes;
    this.#keep("waybill.share", yes ? "yes" : "no");
    this.#look();
  }

  duty(on) {
    if (on === this.onDuty) return;
    this.onDuty = on;
    this.#look();
  }

  stop() {
    clearInterval(this.timer);
    if (this.watch !== null) this.sensor.clearWatch(this.watch);
    Object.assign(this, { timer: 0, watch: null, buffer: [], sentAt: null });
  }

  #look() {
    this.stop();
    if (!this.agreed) this.#say("off");
    else if (!this.sensor) this.#say("missing");
    else if (!this.secure) this.#say("insecure");
    else if (!this.onDuty) this.#say("resting");
    else this.#start();
  }

  #start() {
    this.#say("searching");
    this.lastFix = Date.now();
    this.watch = this.sensor.watchPosition((fix) => this.#take(fix), (e) => this.#failed(e), options);
    this.timer = setInterval(() => this.#report(), this.every);
  }

  #take({ coords, timestamp }) {
    if (this.watch === null) return;
    this.lastFix = Date.now();
    this.accuracy = coords.accuracy;
    this.buffer.push({
      seq: this.#seq(), lat: coords.latitude, lng: coords.longitude, fix_time: new Date(timestamp).toISOString(),
      ...known("accuracy_m", coords.accuracy), ...known("speed_mps", coords.speed), ...known("heading_deg", coords.heading),
    });
    if (this.buffer.length > most) this.buffer.shift();
    if (!this.sentAt) this.#report(); // the first is not kept back
  }

  #failed({ code }) {
    if (this.watch === null) return;
    if (code === 1) {
      this.stop();
      this.#say("denied");
    } else if (!this.buffer.length) {
      this.#say("searching");
    }
  }

  async #report() {
    if (this.sending) return;
    if (!this.buffer.length) return this.#ask();
    this.sending = true;
    const batch = this.buffer.splice(0);
    let state = "shared";
    try {
      await this.send(batch);
      this.sentAt = new Date();
    } catch ({ status }) {
      state = "stuck";
      // Without an answer they are kept and go with the next. After any other
      // the API wants the next ones only.
      if (status === 0) this.buffer = [...batch, ...this.buffer].slice(-most);
    }
    this.sending = false;
    if (this.watch !== null) this.#say(state);
  }

  #ask() {
    if (Date.now() - this.lastFix < still) return;
    this.lastFix = Date.now();
    this.sensor.getCurrentPosition((fix) => this.#take(fix), (e) => this.#failed(e), options);
  }

  // seq goes on across reloads of the page, whatever the phone's clock does.
  #seq() {
    const next = Math.max(Number(this.#recall("waybill.seq")) + 1 || 0, Date.now());
    this.#keep("waybill.seq", String(next));
    return next;
  }

  #say(state) {
    this.state = state;
    this.changed();
  }

  #recall(name) {
    try {
      return this.storage.getItem(name);
    } catch {
      return null;
    }
  }

  #keep(name, value) {
    try {
      this.storage.setItem(name, value);
    } catch {
      // holds as long as the page
    }
  }
}

const known = (name, value) => (Number.isFinite(value) && value >= 0 ? { [name]: value } : {});
