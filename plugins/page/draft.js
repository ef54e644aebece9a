// What the visitor typed: kept in the browser for the next visit, and in a link that others can
// open.
//
// The source stands behind the link's #, which browsers send to no server. Whoever opens a link
// finds the source in the editor; it is not run before somebody presses a button or brings a
// picture.

const KEY = "postern-draft";
/** Longer sources make links that programs cut. */
const LONGEST = 16000;

const encode = (text) => btoa(String.fromCharCode(...new TextEncoder().encode(text))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");

function decode(text) {
  const bytes = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(bytes, (c) => c.charCodeAt(0)));
}

/** The source of the link that led here, or what was typed last; null if there is neither. */
export function found() {
  const coded = location.hash.match(/^#source=([\w-]+)$/)?.[1];
  try {
    if (coded) return decode(coded);
  } catch {
    // A link that was cut.
  }
  return localStorage.getItem(KEY);
}

/** Keeps a source. */
export function keep(source) {
  try {
    localStorage.setItem(KEY, source);
  } catch {
    // A browser that keeps nothing.
  }
}

/** Where others find a source; null if it is too long. */
export function link(source) {
  return source.length > LONGEST ? null : `#source=${encode(source)}`;
}
