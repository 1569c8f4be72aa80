// Why a courier's step was not taken, in their own language: the API's words are
// for who writes clients.
import { explain } from "./i18n.js";
import { MOVED, UNSURE } from "./courier-model.js";

export function refusalOf(t, problem) {
  if (problem === MOVED || problem === UNSURE) return t(`courier.${problem}`);
  if (problem.type.endsWith("#delivery-code")) return codeRefusal(t, problem);
  if (problem.type.endsWith("#version-conflict")) return t("courier.moved");
  if (problem.type.endsWith("#forbidden-transition") && problem.from) return t("courier.forbidden", { state: stateOf(t, problem.from) });
  if (problem.status === 404) return t("courier.gone");
  return explain(t, problem);
}

export const isLocked = (problem) => Boolean(problem?.type?.endsWith("#delivery-code") && problem.status === 409);

function codeRefusal(t, problem) {
  if (isLocked(problem)) return t("courier.code.locked");
  return problem.triesLeft === null ? explain(t, problem) : t("courier.code.wrong", { n: problem.triesLeft });
}

// A courier's duty has words of its own beside an order's states.
function stateOf(t, name) {
  const text = t(`state.${name}`);
  return text === `state.${name}` ? t(`courier.duty.${name}`) : text;
}
