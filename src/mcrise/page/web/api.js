// Asking the server. What it refuses becomes an Error with its sentence.

export async function ask(path, options = {}) {
  const answer = await fetch(`/api/${path}`, options);
  if (answer.ok) return answer;
  const told = await answer.json().catch(() => ({}));
  const words = typeof told.detail === "string" ? told.detail
    : (told.detail || []).map((one) => `${one.loc?.at(-1)}: ${one.msg}`).join("; ");
  const error = new Error(words || `The server answered ${answer.status}.`);
  error.status = answer.status;
  throw error;
}

export const askJson = async (path, options) => (await ask(path, options)).json();

/** A path with the parameters that are set. */
export function query(path, values) {
  const set = Object.entries(values).filter(([, value]) => value !== null && value !== undefined);
  return `${path}?${new URLSearchParams(set)}`;
}

/** Follow a job; `progress` gets its state each time it changed, `rest` when it no longer runs. */
export function follow(id, progress, rest) {
  const source = new EventSource(`/api/jobs/${id}/events`);
  source.addEventListener("progress", (event) => progress(JSON.parse(event.data)));
  for (const end of ["rest", "gone"]) {
    source.addEventListener(end, () => { source.close(); rest(end); });
  }
  return source;
}

export const byId = (id) => document.getElementById(id);
