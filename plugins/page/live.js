// What the server does now: the counter of requests, the table of domains, and a domain's window.

import { $, count, el, hex, size, svg, time } from "./dom.js";
import * as server from "./server.js";

const SECONDS = 60;
/** Rows of the table of domains; the rest is counted. */
const ROWS = 12;
/** Milliseconds between two requests of the page's own. */
const BEAT = 250;

/** Requests in each of the last seconds, and whether something faulted in it. */
const rates = Array.from({ length: SECONDS }, () => ({ rate: 0, fault: false }));
let last = null;
/** Answers to the page's own requests; those since the last report. */
let [beats, since] = [0, 0];
let heartbeat = "/status";
let [chosen, byHand] = [null, false];
/** Whether all domains are shown, and those that there were last. */
let [everything, domainsNow] = [false, []];
/** The domain that the visitor's plugins run in. */
let mine = null;

/** Marks the visitor's own domain. Its window is shown unless another was chosen. */
export function own(id) {
  mine = id;
  rows.forEach(mark);
}

/** Requests that the server has answered to this page in the background. */
export const beaten = () => beats;

async function beat() {
  if (!document.hidden) {
    try {
      const answer = await fetch(heartbeat, { cache: "no-store" });
      await answer.arrayBuffer();
      beats += 1;
      since += 1;
      if (last) $("requests").textContent = count(last.requests + since);
      $("dot").classList.toggle("on");
    } catch {
      // The next report says that nobody answers.
    }
  }
  setTimeout(beat, BEAT);
}

function report(status) {
  $("dot").classList.toggle("lost", !status);
  if (!status) {
    $("pulse-text").textContent = "no answer from the server";
    return;
  }
  const faults = status.domains.reduce((sum, domain) => sum + domain.faults, 0);
  if (last) {
    const seconds = Math.max(0.5, status.uptime_s - last.uptime_s);
    rates.push({ rate: Math.max(0, status.requests - last.requests) / seconds, fault: faults > last.faults });
    rates.shift();
  }
  last = { requests: Math.max(status.requests, (last?.requests ?? 0) + since), uptime_s: status.uptime_s, faults };
  since = 0;
  heartbeat = status.heartbeat ?? "/status";
  $("requests").textContent = count(last.requests);
  $("pulse-text").textContent = `up ${uptime(status.uptime_s)}, ${count(faults)} faults reported, still answering`;
  drawRates();
  drawDomains(status.domains);
}

function uptime(seconds) {
  const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, Math.floor(seconds) % 60];
  return parts.map((part, i) => (i ? String(part).padStart(2, "0") : part)).join(":");
}

function drawRates() {
  const most = Math.max(8, ...rates.map(({ rate }) => rate));
  const wide = 240 / SECONDS;
  const bar = ({ rate, fault }, i) =>
    svg("rect", {
      x: i * wide + 0.5,
      width: wide - 1,
      y: 40 - Math.max(0.5, (38 * rate) / most),
      height: Math.max(0.5, (38 * rate) / most),
      class: fault ? "fault" : false,
    });
  $("rate").replaceChildren(...rates.map(bar));
}

const COLUMNS = [
  ["wide", (d) => d.kind],
  ["wide", (d) => d.owner],
  [(d) => `state ${d.state}`, (d) => d.state],
  ["n", (d) => count(d.calls)],
  ["n", (d) => (d.busy_us ? time(1000 * d.busy_us) : "0 µs")],
  [(d) => (d.faults ? "n faulty" : "n"), (d) => count(d.faults)],
  ["n", (d) => size(d.resident_bytes)],
];

/** Rows stay as long as their domains do, so that the keyboard's focus stays where it is. */
const rows = new Map();

function drawDomains(domains) {
  domainsNow = domains;
  const rank = (domain) => [domain.kind === "plugin" ? 0 : 1, -domain.calls];
  const all = domains.toSorted((a, b) => rank(a)[0] - rank(b)[0] || rank(a)[1] - rank(b)[1]);
  // The visitor's own and the chosen one are always there.
  const kept = (domain) => domain.id === mine || domain.id === chosen;
  const order = everything ? all : [...all.filter(kept), ...all.filter((domain) => !kept(domain))].slice(0, ROWS);
  drawMore(all.length - order.length);
  for (const id of [...rows.keys()]) {
    if (!order.some((domain) => domain.id === id)) {
      rows.get(id).remove();
      rows.delete(id);
    }
  }
  const there = (id) => domains.some((domain) => domain.id === id);
  byHand &&= there(chosen);
  if (!byHand) chosen = there(mine) ? mine : (order[0]?.id ?? null);
  if (domains.length) document.querySelector("#domains td[colspan]")?.closest("tr").remove();
  order.forEach((domain, place) => {
    const row = rows.get(domain.id) ?? newRow(domain);
    COLUMNS.forEach(([name, text], i) => {
      const cell = row.children[i + 1];
      cell.className = typeof name === "function" ? name(domain) : name;
      if (cell.textContent !== text(domain)) cell.textContent = text(domain);
    });
    const body = $("domains");
    if (body.children[place] !== row) body.insertBefore(row, body.children[place] ?? null);
  });
  rows.forEach(mark);
}

/** How many are not shown, and a button that shows them. */
function drawMore(count) {
  $("more").hidden = !count && !everything;
  $("more").textContent = everything ? "Show fewer" : `Show ${count} more`;
}

/** Which row is chosen, and which is the visitor's. */
function mark(row, id) {
  row.querySelector("button").setAttribute("aria-pressed", String(id === chosen));
  row.querySelector(".yours").hidden = id !== mine;
}

function newRow(domain) {
  const choose = () => {
    [chosen, byHand] = [domain.id, true];
    rows.forEach(mark);
    look();
  };
  const button = el("button", { type: "button", class: "link", onclick: choose }, domain.name);
  const row = el("tr", {}, el("th", { scope: "row" }, button, el("span", { class: "yours", hidden: true }, "yours")), ...COLUMNS.map(() => el("td")));
  rows.set(domain.id, row);
  return row;
}

/** What areas are for, by what the kernel lets the domain do. */
const USES = [
  ["code", "machine code: runs, never written", (a) => a.protection.startsWith("x")],
  ["shared", "shared with the host", (a) => a.what.startsWith("area")],
  ["constant", "constants: read", (a) => a.protection === "r"],
  ["data", "variables, heap and stacks: read and written", () => true],
];
const use = (area) => USES.find(([, , is]) => is(area))[0];
const MAY = { r: "read", rw: "read, write", x: "run, read" };

let drawn = "";

/** Draws the window of the chosen domain, if it is another than before. */
async function look() {
  if (chosen === null) return;
  const window = await server.memory(chosen).catch(() => null);
  const now = JSON.stringify(window) + innerWidth;
  if (!window || now === drawn) return;
  drawn = now;
  $("window-name").textContent = window.name;
  const wide = Math.max(280, $("strip").clientWidth);
  const slots = [];
  let end = 0;
  for (const area of window.areas) {
    if (area.start > end) slots.push({ gap: true, start: end, end: area.start, bytes: area.start - end });
    slots.push(area);
    end = area.end;
  }
  if (end < 2 ** 32) slots.push({ gap: true, start: end, end: 2 ** 32, bytes: 2 ** 32 - end });
  const weight = (slot) => (slot.gap ? 0.5 : 1) * Math.max(2, Math.log2(slot.bytes / 4096) + 3);
  const unit = wide / slots.reduce((sum, slot) => sum + weight(slot), 0);
  let x = 0;
  const parts = slots.map((slot) => {
    const [at, width] = [x, weight(slot) * unit];
    x += width;
    const text = slot.gap
      ? `nothing, ${size(slot.bytes)} from ${hex(slot.start)}`
      : `${slot.what}: ${MAY[slot.protection] ?? slot.protection}, ${size(slot.bytes)} from ${hex(slot.start)}`;
    const attributes = { x: at, y: 0, width: Math.max(1, width - 1.5), height: 64, rx: 3, class: slot.gap ? "gap" : use(slot) };
    const shape = svg("rect", attributes, svg("title", {}, text));
    if (slot.gap) return shape;
    const row = () => $("areas").querySelector(`[data-start="${slot.start}"]`);
    const light = (on) => row()?.classList.toggle("lit", on);
    Object.entries({ tabindex: 0, role: "img", "aria-label": text }).forEach(([name, value]) => shape.setAttribute(name, value));
    for (const name of ["focus", "mouseenter"]) shape.addEventListener(name, () => light(true));
    for (const name of ["blur", "mouseleave"]) shape.addEventListener(name, () => light(false));
    return shape;
  });
  const hatch = svg("pattern", { id: "hatch", width: 7, height: 7, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, svg("rect", { width: 2, height: 7 }));
  $("strip").replaceChildren(svg("svg", { viewBox: `0 0 ${wide} 64`, height: 64, width: wide }, svg("defs", {}, hatch), ...parts));
  const used = USES.filter(([name]) => window.areas.some((area) => use(area) === name));
  $("legend").replaceChildren(...used.map(([name, text]) => el("li", {}, el("span", { class: `chip ${name}` }), text)));
  $("areas").replaceChildren(
    ...window.areas.map((area) =>
      el(
        "tr",
        { "data-start": area.start },
        el("td", { class: "mono" }, el("span", { class: `chip ${use(area)}` }), hex(area.start)),
        el("td", { class: "n" }, size(area.bytes)),
        el("td", {}, MAY[area.protection] ?? area.protection),
        el("td", {}, area.what),
      ),
    ),
  );
}

export function start() {
  drawRates();
  let first = true;
  server.watch((status) => {
    report(status);
    if (first && status) beat();
    if (status) {
      first = false;
      if (!document.hidden) look();
    }
  });
  $("more").addEventListener("click", () => {
    everything = !everything;
    drawDomains(domainsNow);
  });
  addEventListener("resize", look);
}

