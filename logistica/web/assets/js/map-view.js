// A live map, apart from how the base is drawn: markers, names of districts and
// what is in view. Markers are elements laid over the base, so they are the same
// over MapLibre's and over ours.
import { around } from "./geo.js";
import { Glide } from "./glide.js";
import { districts, readBase } from "./map-base.js";
import { drawGL, hasWebGL } from "./map-gl.js";
import { drawSVG } from "./map-svg.js";

const noLibrary = (e) => console.warn("The map is drawn without WebGL:", e?.message ?? e);

export class MapView {
  // box gets the base, marks the markers. onChange is called when kind or
  // touched changed, onPick with the id of a courier that was clicked on. A calm
  // map moves only for what would lie outside: where orders come and go, it
  // would never stand still.
  constructor(box, marks, { onChange, onPick = null, calm = false }) {
    Object.assign(this, { box, marks, onChange, onPick, calm, places: [], couriers: new Map(), elements: new Map(), names: [], base: null });
    this.kind = ""; // gl or svg, once it can be seen; "none" where not even the streets came
    this.touched = false; // the visitor chose the view: it is theirs
    this.still = matchMedia("(prefers-reduced-motion: reduce)");
    this.#open();
  }

  async #open() {
    const calls = { onMove: () => this.#ask(), onTouched: () => this.#touch(true), onLost: () => this.#fallBack() };
    this.calls = calls;
    let base = null;
    try {
      if (hasWebGL()) base = await drawGL(this.box, calls).catch(noLibrary);
      base ??= await drawSVG(this.box, calls);
    } catch {
      this.#become("none");
      return;
    }
    await this.#use(base);
  }

  // fallBack goes on without WebGL where the browser took it away.
  async #fallBack() {
    const lost = this.base;
    this.base = null;
    lost?.remove();
    const base = await drawSVG(this.box, this.calls).catch(() => null);
    if (base) await this.#use(base);
  }

  async #use(base) {
    if (this.gone) return base.remove();
    this.base = base;
    if (!this.names.length) this.names = districts(await readBase()).map((d) => ({ ...d, element: this.#element("map-name", d.name) }));
    this.#frameAll(false);
    this.#become(base.kind);
  }

  #become(kind) {
    this.kind = kind;
    this.onChange();
  }

  // setPlaces shows where orders come from and go to: [{id, kind, lat, lng}].
  setPlaces(places) {
    const before = this.places;
    this.places = places;
    if (JSON.stringify(places) === JSON.stringify(before)) return;
    if (!this.calm || !before.length || places.some((p) => this.#outOfView(p))) this.#frameAll(this.calm && before.length > 0);
    this.#ask();
  }

  // setFixes shows where couriers are, and nobody else: [{id, fix, stale, name}].
  setFixes(fixes) {
    const shown = new Set(fixes.map((f) => f.id));
    for (const id of this.couriers.keys()) if (!shown.has(id)) this.couriers.delete(id);
    let frame = false, gently = this.calm;
    for (const { id, fix, ...more } of fixes) {
      const first = !this.couriers.has(id);
      const courier = this.couriers.get(id) ?? { glide: new Glide({ still: this.still.matches }) };
      this.couriers.set(id, { ...courier, ...more });
      courier.glide.take(fix, performance.now());
      if ((first && !this.calm) || this.#outOfView(fix)) frame = true;
      gently ||= !first;
    }
    if (frame) this.#frameAll(gently);
    this.#ask();
  }

  zoom(steps) {
    this.#touch(true);
    this.base?.zoom(steps);
  }

  centre() {
    this.#touch(false);
    this.#frameAll(true);
  }

  remove() {
    this.gone = true;
    cancelAnimationFrame(this.asked);
    this.base?.remove();
    for (const e of this.elements.values()) e.remove();
    for (const n of this.names) n.element.remove();
  }

  #touch(touched) {
    if (this.touched === touched) return;
    this.touched = touched;
    this.onChange();
  }

  #frameAll(gently) {
    const all = [...this.places, ...[...this.couriers.values()].map((c) => c.glide.fix)];
    if (this.base && !this.touched && all.length) this.base.fit(around(all), gently && !this.still.matches);
    this.#ask();
  }

  #outOfView(place) {
    if (!this.base) return false;
    const { x, y } = this.base.project(place), w = this.box.clientWidth, h = this.box.clientHeight;
    return x < w * 0.08 || x > w * 0.92 || y < h * 0.12 || y > h * 0.92;
  }

  // --- drawing, once a frame and only while something moves

  #ask() {
    if (this.asked || this.gone) return;
    this.asked = requestAnimationFrame((now) => {
      this.asked = 0;
      this.#draw(now);
      for (const { glide } of this.couriers.values()) if (glide.moving(now)) return this.#ask();
    });
  }

  #draw(now) {
    if (!this.base || this.gone) return;
    const shown = new Map(this.places.map((p) => [`${p.kind} ${p.id ?? ""}`, { place: p, kind: p.kind }]));
    for (const [id, { glide, ...more }] of this.couriers) shown.set(`courier ${id}`, { place: glide.at(now), kind: "courier", id, ...more });
    for (const [key, element] of this.elements) if (!shown.has(key)) { element.remove(); this.elements.delete(key); }
    const taken = [];
    for (const [key, mark] of shown) taken.push(this.#mark(key, mark));
    this.#nameDistricts(taken);
  }

  #mark(key, { kind, place, id, name, stale }) {
    if (!this.elements.has(key)) this.elements.set(key, this.#element(`map-mark map-mark-${kind}`, "", id));
    const element = this.elements.get(key), at = this.base.project(place);
    put(element, at);
    if (kind !== "courier") return { ...at, w: 40, h: 40 };
    element.classList.toggle("is-stale", Boolean(stale));
    element.classList.toggle("has-heading", place.heading !== null);
    element.dataset.at = `${place.lat.toFixed(5)},${place.lng.toFixed(5)}`;
    if (place.heading !== null) element.style.setProperty("--heading", `${place.heading.toFixed(1)}deg`);
    if (name && element.textContent !== name) element.replaceChildren(label(name));
    return { x: at.x, y: at.y + (name ? 10 : 0), w: Math.max(40, (name?.length ?? 0) * 7 + 12), h: name ? 60 : 40 };
  }

  // nameDistricts leaves out what would lie over another name, a marker or the rim.
  #nameDistricts(taken) {
    const w = this.box.clientWidth, h = this.box.clientHeight;
    taken.push({ x: w - 28, y: 52, w: 56, h: 104 }); // the buttons
    for (const { element, name, ...place } of this.names) {
      const at = this.base.project(place), own = { ...at, x: at.x, y: at.y, w: name.length * 6.5 + 16, h: 22 };
      const free = at.x > own.w / 2 && at.x < w - own.w / 2 && at.y > 14 && at.y < h - 30 && !taken.some((t) => overlaps(t, own));
      element.hidden = !free;
      if (!free) continue;
      taken.push(own);
      put(element, at);
    }
  }

  #element(className, text = "", id = "") {
    const element = document.createElement("div");
    element.className = className;
    element.textContent = text;
    if (id && this.onPick) {
      element.classList.add("is-picked"); // for a mouse; the list beside the map is for everybody
      element.dataset.order = id;
      element.addEventListener("click", () => this.onPick(id));
    }
    this.marks.append(element);
    return element;
  }
}

function label(name) {
  const span = document.createElement("span");
  span.textContent = name;
  return span;
}

function put(element, { x, y }) {
  element.style.transform = `translate(${x.toFixed(1)}px, ${y.toFixed(1)}px)`;
}

const overlaps = (a, b) => Math.abs(a.x - b.x) * 2 < a.w + b.w && Math.abs(a.y - b.y) * 2 < a.h + b.h;
