// Talking to the server: plugins, pictures, and what it is doing.

const KEY = "postern-token";

/** What went wrong, as the server says it: `application/problem+json`. */
export class Problem extends Error {
  constructor(status, problem) {
    super(problem.detail || problem.title || `status ${status}`);
    Object.assign(this, { status, problem });
  }
}

/** Names this visitor's namespace: a guest's own, or one that the visitor was given. */
export function token() {
  let token = sessionStorage.getItem(KEY);
  if (!token) {
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    token = "page-" + [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    sessionStorage.setItem(KEY, token);
  }
  return token;
}

export const setToken = (text) => sessionStorage.setItem(KEY, text);

async function ask(method, path, body, headers = { Authorization: `Bearer ${token()}` }) {
  let answer;
  try {
    answer = await fetch(path, { method, headers, body });
  } catch {
    throw new Problem(0, { title: "No answer", detail: "The server did not answer: is it still running?" });
  }
  if (answer.ok) return answer;
  const text = await answer.text();
  let problem = { title: answer.statusText, detail: text.trim() };
  if (answer.headers.get("Content-Type")?.startsWith("application/problem+json")) problem = JSON.parse(text);
  throw new Problem(answer.status, problem);
}

const plugin = (name) => `/plugins/${encodeURIComponent(name)}`;

/** Compiles a source; what the server says of the result. */
export const put = async (name, source) => (await ask("PUT", plugin(name), source)).json();

/** The site's plugins, which everybody may use. */
export const plugins = async () => (await ask("GET", "/plugins/", undefined, {})).json();

/** The source of one of these. */
export const source = async (name) => (await ask("GET", plugin(name), undefined, {})).text();

/** The machine code, as text. */
export const code = async (name) => (await ask("GET", `${plugin(name)}/code`)).text();

/** Sends a picture through a plugin with arguments as `1,2`: the answer's picture, and nanoseconds by what they went to. */
export async function transcode(name, values, picture) {
  const through = encodeURIComponent(name) + (values ? `(${encodeURIComponent(values)})` : "");
  // A PNG comes back as one, or as what the plugin makes of it; nothing is lost.
  const format = picture.type === "image/png" ? "" : "&format=png";
  const answer = await ask("POST", `/transcode?through=${through}${format}`, picture);
  const times = {};
  for (const part of (answer.headers.get("Server-Timing") ?? "").split(",")) {
    const [what, ...rest] = part.trim().split(";");
    const duration = rest.map((item) => item.trim()).find((item) => item.startsWith("dur="));
    if (duration) times[what] = (times[what] ?? 0) + 1e6 * Number(duration.slice(4));
  }
  return { picture: await answer.blob(), times };
}

export const status = async () => (await ask("GET", "/status")).json();

export const memory = async (id) => (await ask("GET", `/status/domains/${id}/window`)).json();

/** Reports each second: pushed by the server, or asked for if it has no room for another listener. */
export function watch(show) {
  const poll = async () => {
    await status().then(show, () => show(null));
    setTimeout(poll, 1000);
  };
  const events = new EventSource("/status/events");
  events.onmessage = (event) => show(JSON.parse(event.data));
  events.onerror = () => {
    show(null);
    if (events.readyState === EventSource.CLOSED) poll();
  };
}
