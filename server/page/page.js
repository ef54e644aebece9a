// The page: what is pressed and what happens then.

import { $, el, time } from "./dom.js";
import { Editor } from "./editor.js";
import * as live from "./live.js";
import * as picture from "./picture.js";
import * as result from "./result.js";
import { ATTACKS, FILTERS, nameOf } from "./samples.js";
import * as server from "./server.js";

const [before, after] = [$("before"), $("after")];
let running = false;

const editor = new Editor($("source"), $("paint"), {
  onRun: run,
  onChange: () => $("problems").replaceChildren(),
});

function say(text, kind = "") {
  $("said").textContent = text;
  $("said").className = `said ${kind}`;
}

/** Compiles what is in the editor, and sends the photograph through it. */
async function run() {
  if (running) return;
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
    server.code(name).then(result.showCode, () => {});
    say(`Running ${name} …`);
    const sent = await picture.file(before);
    const answer = await server.transcode(name, sent);
    await picture.show(after, answer.picture);
    const call = answer.times[name];
    result.showCall(call);
    $("veil").hidden = true;
    $("after-figure").classList.remove("failed");
    result.choose("code");
    say(`${name} turned ${before.width} × ${before.height} into ${after.width} × ${after.height} pixels in ${time(call)}.`, "good");
  } catch (problem) {
    failed(problem, name, source, live.beaten() - beats);
  } finally {
    busy(false);
  }
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
    const { line, column, message, kind } = text.fault;
    if (line) editor.show([{ line, column, message: message ?? kind }]);
    $("veil").textContent = "Stopped";
    say(`${name} was stopped: ${text.fault.message ?? kind}. The server goes on.`, "bad");
    result.showReport(status, text, source, meanwhile);
  } else {
    $("token-form").hidden = status !== 401 && status !== 403;
    say(problem.message, "bad");
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

/** Another source into the editor; what was written by hand can be had back. */
function load(sample) {
  editor.source = sample.source;
  $("problems").replaceChildren();
}

for (const [index, sample] of FILTERS.entries()) $("sample").append(el("option", { value: index }, sample.title));
$("sample").addEventListener("change", () => load(FILTERS[$("sample").value]));
$("run").addEventListener("click", run);
for (const attack of ATTACKS) {
  const press = () => {
    if (running) return;
    load(attack);
    run();
  };
  $("attacks").append(el("button", { type: "button", class: "danger", onclick: press }, el("strong", {}, attack.title), el("span", {}, attack.why)));
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

load(FILTERS[0]);
picture.landscape(before);
live.start();
