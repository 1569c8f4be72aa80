// A marker's way between the fixes it gets. A fix that is not newer than the
// last one, by the time the courier was there, is no news: what comes late or
// twice never moves it back.
import { bearing, metres } from "./geo.js";
import { instant } from "./format.js";

const slowest = 6000; // ms a glide takes at most
const leap = 3000; // metres: farther than this nobody rode, they were out of reach

export const isNewer = (fix, old) => {
  const time = instant(fix?.fix_time)?.getTime();
  return time !== undefined && !(time <= instant(old?.fix_time)?.getTime());
};

export class Glide {
  constructor({ still = false } = {}) {
    this.still = still; // no motion wanted: it stands where the newest fix is
    this.fix = null;
  }

  // take says whether the fix is news. now is in ms, of any steady clock.
  take(fix, now) {
    if (!isNewer(fix, this.fix)) return false;
    const here = this.fix && this.at(now);
    const way = here ? metres(here, fix) : 0;
    this.from = here ?? { lat: fix.lat, lng: fix.lng };
    this.heading = { from: here?.heading ?? fix.heading_deg ?? null, to: fix.heading_deg ?? (way > 5 ? bearing(here, fix) : here?.heading ?? null) };
    this.since = now;
    this.lasts = this.still || !here || way > leap ? 0 : Math.min(slowest, Math.max(300, this.#gap(fix)));
    this.fix = fix;
    return true;
  }

  #gap(fix) {
    return instant(fix.fix_time).getTime() - instant(this.fix.fix_time).getTime();
  }

  moving(now) {
    return this.fix !== null && now - this.since < this.lasts;
  }

  // at is where the marker is now, and which way it looks: null where nobody knows.
  at(now) {
    const part = this.lasts ? Math.min(1, Math.max(0, (now - this.since) / this.lasts)) : 1;
    const { from, fix } = this;
    return {
      lat: from.lat + (fix.lat - from.lat) * part,
      lng: from.lng + (fix.lng - from.lng) * part,
      heading: turned(this.heading, part),
    };
  }
}

// turned goes the short way round.
function turned({ from, to }, part) {
  if (from === null || to === null) return to;
  const turn = ((to - from + 540) % 360) - 180;
  return (from + turn * Math.min(1, part * 3) + 360) % 360;
}
