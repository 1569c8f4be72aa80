// How many orders stand where, from the read model, and the filter of the list.
import { html } from "./lib.js";
import { useLanguage } from "./i18n.js";
import { states, tone } from "./states.js";

export function StateStrip({ counts, filter, onFilter }) {
  const { t, f } = useLanguage();
  const known = states.map((state) => ({ state, count: counts?.[state] ?? 0 }));
  const shown = known.filter((c) => c.count > 0 || c.state === filter);
  const total = known.reduce((n, c) => n + c.count, 0);
  return html`<section class="strip" aria-labelledby="strip-title">
    <div class="strip-head"><h2 id="strip-title">${t("strip.title")}</h2><span class="num muted">${counts ? t("strip.total", { n: total }) : ""}</span></div>
    <div class="bar" aria-hidden="true">${shown.map(({ state, count }) => html`<i key=${state} class="tone-${tone(state)}" style=${{ flexGrow: count }}></i>`)}</div>
    <div class="legend">
      <${Pick} on=${!filter} label=${t("strip.all")} onPick=${() => onFilter("")}>${t("strip.all")}<//>
      ${shown.map(({ state, count }) => html`<${Pick} key=${state} on=${filter === state} state=${state}
        label=${t("strip.show", { state: t(`state.${state}`), n: count })} onPick=${() => onFilter(filter === state ? "" : state)}>
        <i class="dot tone-${tone(state)}" aria-hidden="true"></i>${t(`state.${state}`)} <b class="num">${f.number(count)}</b><//>`)}
      ${counts && !total && html`<span class="muted">${t("strip.none")}</span>`}
    </div>
  </section>`;
}

function Pick({ on, state, label, onPick, children }) {
  return html`<button type="button" class="pick" data-filter=${state ?? ""} aria-pressed=${String(on)} aria-label=${label} onClick=${onPick}>${children}</button>`;
}
