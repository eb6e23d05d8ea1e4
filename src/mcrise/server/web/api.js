// @ts-check
// Asking the server. What it refuses becomes an Error with its sentence.
// While the server does not answer, `state.lost` is true.

import { change, state } from "./store.js";

const connected = (is) => {
  if (state.lost === is) change({ lost: !is });
};

export async function ask(path, options = {}) {
  let answer;
  try {
    answer = await fetch(`/api/${path}`, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    connected(false);
    throw Object.assign(new Error("The server does not answer."), { status: 0 });
  }
  connected(true);
  if (answer.ok) return answer;
  const body = await answer.json().catch(() => ({}));
  const fields = Array.isArray(body.detail)
    ? body.detail.map((one) => ({ field: one.loc?.at(-1), words: one.msg }))
    : [];
  const words =
    typeof body.detail === "string" ? body.detail : fields.map((one) => `${one.field}: ${one.words}`).join("; ");
  throw Object.assign(new Error(words || `The server answered ${answer.status}.`), { status: answer.status, fields });
}

export const askJson = async (path, options = undefined) => (await ask(path, options)).json();

/** A path with the parameters that are set. */
export function query(path, values) {
  const set = Object.entries(values).filter(([, value]) => value !== null && value !== undefined);
  return `${path}?${new URLSearchParams(set)}`;
}
