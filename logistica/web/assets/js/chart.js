// A chart of one or more series over the same points, as bars or lines. It is
// drawn in pixels of its own width, so that its words keep their size. The arrow
// keys walk through the points and a pointer shows the one beneath it; what it
// shows is also said, and all of it is in a table.
import { html, useEffect, useId, useRef, useState } from "./lib.js";
import { useLanguage } from "./i18n.js";
import { stretches, ticks } from "./chart-scale.js";

const height = 190, top = 10, bottom = 24, right = 22;
const ink = height - top - bottom;

// tells is whether a value is one to show. A share of nothing is not known, so one
// of zero says something; a count of zero says no more than its absence.
export const tells = (unit, v) => (unit === "share" ? v !== null && v !== undefined : Boolean(v));

export function Chart({ id, title, why, head, kind, unit, points, series, format }) {
  const { t } = useLanguage();
  const told = points.filter((p) => p.values.some((v) => tells(unit, v)));
  const empty = !told.length;
  return html`<section class="card" id=${id} data-empty=${empty} aria-labelledby="${id}-title">
    <div class="card-head"><h2 id="${id}-title">${title}</h2>${series.length > 1 && html`<ul class="legend">${series.map((s) => html`<li key=${s.name} class="tone-${s.tone}"><i aria-hidden="true"></i>${s.name}</li>`)}</ul>`}</div>
    <p class="muted">${why}</p>
    ${empty ? html`<p class="empty">${t("fig.empty")}</p>` : html`<${Plot} title=${title} kind=${kind} unit=${unit} points=${points} series=${series} format=${format} />
      <${Table} title=${title} head=${head} points=${told} series=${series} format=${format} />`}
  </section>`;
}

function useWidth(ref) {
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const look = new ResizeObserver(([entry]) => setWidth(Math.floor(entry.contentRect.width)));
    look.observe(ref.current);
    return () => look.disconnect();
  }, []);
  return width;
}

function Plot({ title, kind, unit, points, series, format }) {
  const { t } = useLanguage();
  const box = useRef(null);
  const width = useWidth(box);
  const [at, setAt] = useState(null);
  const id = useId();
  const marks = ticks(unit, points.flatMap((p) => p.values));
  const left = 12 + 7 * Math.max(...marks.map((m) => format(m).length));
  const slot = Math.max(1, width - left - right) / points.length;
  const x = (i) => left + slot * (i + 0.5);
  const [low, high] = [marks[0], marks.at(-1)];
  const y = (v) => top + ink * (1 - (v - low) / (high - low));
  const here = at === null ? null : Math.min(at, points.length - 1);
  const onKey = (e) => {
    const last = points.length - 1;
    const to = { ArrowRight: (here ?? -1) + 1, ArrowLeft: (here ?? last + 1) - 1, Home: 0, End: last }[e.key];
    if (e.key === "Escape") setAt(null);
    if (to === undefined) return;
    e.preventDefault();
    setAt(Math.max(0, Math.min(last, to)));
  };
  const onMove = (e) => {
    const i = Math.floor((e.clientX - box.current.getBoundingClientRect().left - left) / slot);
    setAt(i >= 0 && i < points.length ? i : null);
  };
  const said = here === null ? "" : `${points[here].label}: ${series.map((s, n) => (series.length > 1 ? `${s.name} ` : "") + value(t, format, points[here].values[n])).join(", ")}${points[here].more ? ` (${points[here].more})` : ""}`;
  return html`<div class="plot" ref=${box} tabindex="0" role="group" aria-label=${title} aria-describedby="${id}-keys"
      onKeyDown=${onKey} onBlur=${() => setAt(null)} onPointerMove=${onMove} onPointerDown=${onMove} onPointerLeave=${() => setAt(null)}>
    ${width > 0 && html`<svg width=${width} height=${height} viewBox="0 0 ${width} ${height}" aria-hidden="true">
      ${marks.map((m) => html`<g key=${m}><line class="grid" x1=${left} x2=${width - right} y1=${y(m)} y2=${y(m)} /><text class="axis" x=${left - 8} y=${y(m) + 4} text-anchor="end">${format(m)}</text></g>`)}
      ${dates(points, slot).map((i) => html`<text key=${i} class="axis" x=${x(i)} y=${height - 6} text-anchor="middle">${points[i].short}</text>`)}
      ${here !== null && html`<line class="cursor" x1=${x(here)} x2=${x(here)} y1=${top} y2=${top + ink} />`}
      ${series.map((s, n) => html`<g key=${s.name} class="tone-${s.tone}">${kind === "bars"
        ? bars(unit, points.map((p) => p.values[n]), x, y, slot, here) : line(points.map((p) => p.values[n]), x, y, here)}</g>`)}
    </svg>`}
    ${here !== null && html`<p class="tip" style=${{ left: `${Math.max(4, Math.min(x(here) - 80, width - 164))}px` }}>${said}</p>`}
    <p class="visually-hidden" id="${id}-keys">${t("fig.keys")}</p>
    <p class="visually-hidden" aria-live="polite">${said}</p>
  </div>`;
}

const value = (t, format, v) => (v === null || v === undefined ? t("fig.none") : format(v));

// dates are the points whose time is written: as many as there is room for.
function dates(points, slot) {
  const each = Math.max(1, Math.ceil(70 / slot));
  return points.map((_, i) => i).filter((i) => (points.length - 1 - i) % each === 0);
}

// bars leaves a mark where the value is zero and that says something.
function bars(unit, values, x, y, slot, here) {
  const wide = Math.max(1, Math.min(28, slot * 0.72));
  return values.map((v, i) => {
    const tall = Math.max(v ? 1 : 2, Math.abs(y(0) - y(v)));
    return tells(unit, v) && html`<rect key=${i} class="bar ${i === here ? "is-here" : ""}" x=${x(i) - wide / 2} width=${wide} rx=${Math.min(3, wide / 3)}
      y=${v < 0 ? y(0) : y(0) - tall} height=${tall} />`;
  });
}

function line(values, x, y, here) {
  return stretches(values).map((part) => html`<g key=${part[0][0]}>
    <path class="line" d=${part.map(([i, v], n) => `${n ? "L" : "M"}${x(i).toFixed(1)} ${y(v).toFixed(1)}`).join("")} />
    ${part.filter(([i]) => part.length === 1 || i === here).map(([i, v]) => html`<circle key=${i} class="point" cx=${x(i)} cy=${y(v)} r=${i === here ? 4 : 3} />`)}
  </g>`);
}

function Table({ title, head, points, series, format }) {
  const { t } = useLanguage();
  return html`<details><summary>${t("fig.table")}</summary><div class="scroll" tabindex="0" role="region" aria-label=${title}><table>
    <caption class="visually-hidden">${title}</caption>
    <thead><tr><th scope="col">${head}</th>${series.map((s) => html`<th key=${s.name} scope="col">${s.name}</th>`)}</tr></thead>
    <tbody>${points.map((p) => html`<tr key=${p.label}><th scope="row">${p.label}</th>${p.values.map((v, n) => html`<td key=${n} class="num">${value(t, format, v)}${p.more ? ` (${p.more})` : ""}</td>`)}</tr>`)}</tbody>
  </table></div></details>`;
}
