// The page: what is pressed and what happens then.

import { $, el, time } from "./dom.js";
import * as draft from "./draft.js";
import { Editor } from "./editor.js";
import * as live from "./live.js";
import * as picture from "./picture.js";
import * as result from "./result.js";
import { ATTACKS, FILTERS, argumentsOf, lineOf, nameOf } from "./samples.js";
import * as server from "./server.js";

const [before, after] = [$("before"), $("after")];
let [running, again] = [false, false];

const editor = new Editor($("source"), $("paint"), {
  onRun: run,
  onChange: () => {
    mine = editor.source;
    draft.keep(mine);
    share(mine);
    $("values-label").hidden = argumentsOf(mine) === null;
    own.hidden = false;
    $("sample").value = "mine";
    $("problems").replaceChildren();
  },
});

function say(text, kind = "") {
  $("said").textContent = text;
  $("said").className = `said ${kind}`;
}

/** Brings what came of it to where it is seen, where the page is one column. */
function bring(id) {
  if (matchMedia("(max-width: 1000px)").matches) $(id).scrollIntoView({ block: "nearest" });
}

/** Compiles what is in the editor, and sends the photograph through it. */
async function run() {
  if (running) {
    again = true;
    return;
  }
  again = false;
  const source = editor.source;
  const name = nameOf(source);
  $("problems").replaceChildren();
  editor.show([]);
  if (!name) {
    showProblems([
      { line: 1, message: "there is no plugin in it", remedy: "write a function `int NAME(struct picture *p)`; NAME is the plugin's name" },
    ]);
    return;
  }
  busy(true);
  const beats = live.beaten();
  try {
    say(`Compiling ${name} …`);
    const plugin = await server.put(name, source);
    result.showPlugin(plugin);
    live.own(plugin.domain);
    server.code(name).then(result.showCode, () => {});
    say(`Running ${name} …`);
    const sent = await picture.file(before);
    const answer = await server.transcode(name, $("values-label").hidden ? "" : $("values").value.replaceAll(" ", ""), sent);
    await picture.show(after, answer.picture).catch(() => {
      const { size, type } = answer.picture;
      throw new server.Problem(0, { detail: `${name} answered ${size} bytes of ${type}: no picture that the browser can show.` });
    });
    const call = answer.times[name];
    result.showCall(call);
    $("veil").hidden = true;
    $("after-figure").classList.remove("failed");
    result.choose("code");
    bring("drop");
    say(`${name} turned ${before.width} × ${before.height} into ${after.width} × ${after.height} pixels in ${time(call)}.`, "good");
  } catch (problem) {
    failed(problem, name, source, live.beaten() - beats);
  } finally {
    busy(false);
  }
  if (again) run();
}

function failed(problem, name, source, meanwhile) {
  if (!(problem instanceof server.Problem)) throw problem;
  const { status, problem: text } = problem;
  $("after-figure").classList.add("failed");
  $("veil").hidden = false;
  $("veil").textContent = "No picture";
  if (text.diagnostics?.length) {
    showProblems(text.diagnostics);
  } else if (text.fault) {
    const { column, message, kind, function: inside } = text.fault;
    const line = text.fault.line ?? (/^\w+$/.test(inside) ? lineOf(source, inside) : undefined);
    if (line) editor.show([{ line, column, message: message ?? kind }]);
    $("veil").textContent = "Stopped";
    say(`${name} was stopped: ${text.fault.message ?? kind}. The server goes on.`, "bad");
    result.showReport(status, { ...text, fault: { ...text.fault, line } }, source, meanwhile);
    bring("report");
  } else {
    $("token-form").hidden = status !== 401 && status !== 403;
    const none = status === 404 || status === 405;
    say(none ? "This site takes no plugins: its serve.toml has no [plugins]." : problem.message, "bad");
  }
}

/** Errors of the compiler: at their lines, and as a list that leads there. */
function showProblems(problems) {
  editor.show(problems);
  say(problems.length === 1 ? "It does not compile: see the error." : `It does not compile: ${problems.length} errors.`, "bad");
  const item = ({ line, column, message, remedy }) =>
    el(
      "li",
      {},
      el("button", { type: "button", class: "link", onclick: () => editor.go(line, column) }, `Line ${line}`),
      ` ${message}`,
      remedy && el("span", { class: "remedy" }, ` ${remedy}`),
    );
  $("problems").replaceChildren(...problems.map(item));
}

function busy(now) {
  running = now;
  document.body.classList.toggle("busy", now);
  for (const button of document.querySelectorAll("#run, #attacks button")) button.setAttribute("aria-disabled", String(now));
}

/** The link to what is in the editor. */
function share(source) {
  const link = draft.link(source);
  $("link").hidden = link === null;
  if (link) $("link").href = link;
}

/** Another source into the editor, with arguments that it is usually run with. */
function load(source) {
  editor.source = source;
  share(source);
  const values = argumentsOf(source);
  $("values-label").hidden = values === null;
  $("values").value = values ?? "";
  $("problems").replaceChildren();
}

// What can be picked: the filters, what the server has, and what the visitor wrote last.
let mine = "";
const picks = new Map();
function offer(group, title, source) {
  const value = String(picks.size);
  picks.set(value, source);
  group.append(el("option", { value }, title));
}
const group = (label) => {
  const made = el("optgroup", { label });
  $("sample").append(made);
  return made;
};
const attack = el("option", { value: "attack", hidden: true }, "An attack");
const own = el("option", { value: "mine", hidden: true }, "What you wrote");
$("sample").append(own, attack);
const filters = group("Filters");
FILTERS.forEach(({ title, source }) => offer(filters, title, () => source));
picks.set("mine", () => mine);
$("sample").addEventListener("change", async () => {
  try {
    load(await picks.get($("sample").value)());
    run();
  } catch (problem) {
    say(problem.message, "bad");
  }
});

/** Plugins that the server has for everybody. */
async function listPlugins() {
  const plugins = await server.plugins().catch(() => []);
  if (!plugins.length) return;
  const here = group("On this server");
  plugins.forEach(({ name }) => offer(here, name, () => server.source(name)));
}

$("run").addEventListener("click", run);
$("values").addEventListener("keydown", (event) => event.key === "Enter" && run());
for (const { title, why, source } of ATTACKS) {
  const press = () => {
    if (running) return;
    load(source);
    $("sample").value = "attack";
    run();
  };
  $("attacks").append(el("button", { type: "button", class: "danger", onclick: press }, el("strong", {}, title), el("span", {}, why)));
}

$("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  server.setToken($("token").value.trim());
  $("token-form").hidden = true;
  run();
});

async function take(blob) {
  try {
    await picture.show(before, blob, true);
    $("after-figure").classList.add("failed");
    $("veil").hidden = false;
    $("veil").textContent = "Run the plugin";
    run();
  } catch {
    say("The browser cannot read this file as a picture. PNG, JPEG or WebP would do.", "bad");
  }
}

$("file").addEventListener("change", () => $("file").files[0] && take($("file").files[0]));
$("landscape").addEventListener("click", () => {
  picture.landscape(before);
  run();
});
const drop = $("drop");
for (const name of ["dragenter", "dragover", "dragleave", "drop"]) {
  drop.addEventListener(name, (event) => {
    event.preventDefault();
    drop.classList.toggle("over", name === "dragenter" || name === "dragover");
    if (name === "drop" && event.dataTransfer.files[0]) take(event.dataTransfer.files[0]);
  });
}
addEventListener("paste", (event) => {
  const item = [...(event.clipboardData?.files ?? [])].find((file) => file.type.startsWith("image/"));
  if (item) take(item);
});

const typed = draft.found();
load(typed ?? FILTERS[0].source);
if (typed !== null) {
  mine = typed;
  own.hidden = false;
}
$("sample").value = typed === null ? "0" : "mine";
listPlugins();
picture.landscape(before);
live.start();
