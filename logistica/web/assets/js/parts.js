// Small parts both pages use.
import { Component, html, useEffect, useReducer } from "./lib.js";
import { useLanguage } from "./i18n.js";
import { age, instant } from "./format.js";
import { tone } from "./states.js";

export function Brand() {
  return html`<span class="brand"><svg viewBox="0 0 24 24" width="22" height="22" aria-hidden="true">
    <path class="brand-sheet" d="M5 3.5h10.5L19 7v13.5H5z" /><path class="brand-line" d="M8 9h6M8 12.5h8M8 16h5" />
  </svg>Waybill</span>`;
}

export function Connection({ state }) {
  const { t } = useLanguage();
  return html`<span class="conn conn-${state}" role="status"><i aria-hidden="true"></i>${t(`conn.${state}`)}</span>`;
}

export function Chip({ state, pending }) {
  const { t } = useLanguage();
  return html`<span class="chip tone-${tone(state)} ${pending ? "is-pending" : ""}"><i aria-hidden="true"></i>${t(`state.${state}`)}</span>`;
}

// Age ticks alone, so that a list of two hundred rows is not drawn each second.
export function Age({ at }) {
  const { t, f } = useLanguage();
  const [, tick] = useReducer((n) => n + 1, 0);
  useEffect(() => everySecond(tick), []);
  const when = instant(at);
  return html`<time datetime=${when?.toISOString()} title=${f.full(at)} aria-label=${t("age.label", { time: f.full(at) })}>${age(t, at, Date.now())}</time>`;
}

// useSeconds draws the caller anew every few seconds, for what time changes.
export function useSeconds(every) {
  const [, tick] = useReducer((n) => n + 1, 0);
  useEffect(() => {
    let left = every;
    return everySecond(() => {
      if (--left) return;
      left = every;
      tick();
    });
  }, [every]);
}

const tickers = new Set();
let clock = 0;

function everySecond(tick) {
  tickers.add(tick);
  clock ||= setInterval(() => tickers.forEach((each) => each()), 1000);
  return () => {
    tickers.delete(tick);
    if (tickers.size) return;
    clearInterval(clock);
    clock = 0;
  };
}

// Still draws its children anew only when one of the named values changed.
export class Still extends Component {
  shouldComponentUpdate(next) {
    return next.on.some((value, i) => value !== this.props.on[i]);
  }

  render({ draw }) {
    return draw();
  }
}

export function SkipLink() {
  const { t } = useLanguage();
  return html`<a class="skip" href="#content">${t("app.skip")}</a>`;
}
