// Making elements. What is shown comes in as text and never as markup.

const SVG = "http://www.w3.org/2000/svg";

export const $ = (id) => document.getElementById(id);

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child != null));
  return node;
}

export const el = (tag, attributes = {}, ...children) =>
  fill(document.createElement(tag), attributes, children);

export const svg = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS(SVG, tag), attributes, children);

/** 1234567 as 1,234,567. */
export const count = (number) => Number(number).toLocaleString("en");

/** Nanoseconds with a unit that suits them. */
export function time(ns) {
  if (ns == null || Number.isNaN(ns)) return "–";
  const [value, unit] =
    ns < 1e3 ? [ns, "ns"] : ns < 1e6 ? [ns / 1e3, "µs"] : ns < 1e9 ? [ns / 1e6, "ms"] : [ns / 1e9, "s"];
  return `${value < 10 && unit !== "ns" ? value.toFixed(1) : Math.round(value)} ${unit}`;
}

/** Bytes with a unit that suits them. */
export function size(bytes) {
  const units = ["bytes", "KiB", "MiB", "GiB"];
  let unit = 0;
  while (bytes >= 1024 && unit < 3) {
    bytes /= 1024;
    unit += 1;
  }
  return `${bytes < 10 && unit ? bytes.toFixed(1).replace(/\.0$/, "") : Math.round(bytes)} ${units[unit]}`;
}

export const hex = (number) => "0x" + Number(number).toString(16).padStart(8, "0");
