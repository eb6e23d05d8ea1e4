// Asking the server. What it refuses becomes an Error with its sentence; when the server is away, the listeners of `onConnection` hear it.

let lost = false;
const listeners = [];

/** Hear when the connection is lost, and when it is back. */
export const onConnection = (listener) => listeners.push(listener);

function connected(is) {
  if (lost === !is) return;
  lost = !is;
  listeners.forEach((listener) => listener(is));
}

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
  const words = typeof body.detail === "string" ? body.detail
    : (body.detail || []).map((one) => `${one.loc?.at(-1)}: ${one.msg}`).join("; ");
  throw Object.assign(new Error(words || `The server answered ${answer.status}.`), { status: answer.status });
}

export const askJson = async (path, options) => (await ask(path, options)).json();

export const isLost = () => lost;

/** A path with the parameters that are set. */
export function query(path, values) {
  const set = Object.entries(values).filter(([, value]) => value !== null && value !== undefined);
  return `${path}?${new URLSearchParams(set)}`;
}
