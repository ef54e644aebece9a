// What came of a plugin: numbers, machine code, the verifier's facts, the report of a fault; and
// the tabs that hold them.

import { $, count, el, hex, size, time } from "./dom.js";

const tabs = [...document.querySelectorAll("#tabs [role=tab]")];

/** Shows a tab: `code`, `facts` or `fault`. */
export function choose(name) {
  for (const tab of tabs) {
    const chosen = tab.id === `tab-${name}`;
    tab.setAttribute("aria-selected", String(chosen));
    tab.tabIndex = chosen ? 0 : -1;
    $(tab.getAttribute("aria-controls")).hidden = !chosen;
  }
}

for (const [index, tab] of tabs.entries()) {
  tab.addEventListener("click", () => choose(tab.id.slice(4)));
  tab.addEventListener("keydown", (event) => {
    const to = { ArrowRight: index + 1, ArrowLeft: index - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const next = tabs[(to + tabs.length) % tabs.length];
    choose(next.id.slice(4));
    next.focus();
  });
}

/** What the compiler and the verifier say of a plugin; `null` while it is not known. */
export function showPlugin(plugin) {
  $("n-compile").textContent = plugin ? time(plugin.compile_ns) : "–";
  $("n-verify").textContent = plugin ? time(plugin.verify_ns) : "–";
  $("n-code").textContent = plugin ? size(plugin.code_bytes) : "–";
  $("n-call").textContent = "–";
  if (plugin) $("facts").replaceChildren(...facts(plugin.facts));
}

export const showCall = (ns) => ($("n-call").textContent = time(ns));

/** What the verifier's facts mean. */
const FACTS = {
  instructions: "instructions checked, fill included",
  gates: "calls services of the server",
  links: "calls other functions by name",
  indirect: "calls by pointer",
  xmm: "uses vector registers",
  ymm: "uses their upper halves",
  x87: "uses the x87 unit",
};
const words = (key) => FACTS[key] ?? key.replaceAll("_", " ");

function facts(value) {
  return Object.entries(value ?? {}).map(([key, fact]) => el("div", {}, el("dt", {}, words(key)), el("dd", {}, said(fact))));
}

function said(fact) {
  if (typeof fact === "boolean") return fact ? "yes" : "no";
  if (typeof fact === "number") return count(fact);
  if (Array.isArray(fact)) return fact.length ? fact.map(said).join(", ") : "none";
  if (fact && typeof fact === "object") {
    return Object.entries(fact).map(([key, part]) => `${words(key)} ${said(part)}`).join(", ") || "none";
  }
  return fact === null ? "none" : String(fact);
}

/** Machine code: what goes through gs stands out. */
export function showCode(text) {
  const pieces = text.split(/(%?gs:[^\s,]*|^\S[^\n]*:$|#[^\n]*|;[^\n]*)/m);
  const kind = (piece) => (/^%?gs:/.test(piece) ? "gs" : /^[#;]/.test(piece) ? "comment" : "name");
  $("machine").replaceChildren(...pieces.map((piece, i) => (i % 2 ? el("span", { class: kind(piece) }, piece) : piece)));
}

/** Kinds of faults in words; the others say enough themselves. */
const KINDS = {
  "null-pointer": "A null pointer",
  read: "A read where nothing is",
  write: "A write where nothing is",
  "read-only": "A write to what may only be read",
  "bad-jump": "A jump to what is no function",
  execute: "A jump to what is no code",
  arithmetic: "A division that has no result",
  "data-stack-overflow": "The stack is full",
  "control-stack-overflow": "Calls nest too deep",
  "heap-limit": "An access behind the heap",
  deadline: "It did not end in time",
};

/** The report of a fault. `source` is what was run, `meanwhile` how many other requests were answered. */
export function showReport(status, problem, source, meanwhile) {
  const fault = problem.fault ?? {};
  const place = [fault.function && `in ${fault.function}`, fault.line && `at line ${fault.line}`].filter(Boolean).join(" ");
  const rows = [
    ["What", fault.kind],
    ["Where", place],
    ["Address", fault.address == null ? null : typeof fault.address === "number" ? hex(fault.address) : fault.address],
    ["Told to the client", `${status} ${problem.title ?? ""}`],
    ["Number in the log", problem.id],
  ];
  const line = fault.line && source.split("\n")[fault.line - 1];
  $("report").replaceChildren(
    ...[
      el("h3", {}, KINDS[fault.kind] ?? fault.kind ?? "A fault"),
      el("p", { class: "message" }, fault.message ?? problem.detail ?? ""),
      line && el("pre", { class: "culprit" }, el("span", { class: "number" }, String(fault.line)), line),
      el("dl", { class: "facts" }, ...rows.filter(([, fact]) => fact).map(([name, fact]) => el("div", {}, el("dt", {}, name), el("dd", {}, String(fact))))),
      el("p", { class: "meanwhile" }, meanwhile ? `Meanwhile the server answered ${count(meanwhile)} other requests.` : "All other requests are answered as before."),
    ].filter(Boolean),
  );
  choose("fault");
}
