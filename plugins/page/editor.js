// A text area whose text is painted by the element behind it: colours, line numbers, and marks
// where something is wrong.
//
// Both have the same font and the same places for letters. The text area's own letters are
// transparent.

import { el } from "./dom.js";

const TOKENS = new RegExp(
  [
    String.raw`(?<comment>\/\*[\s\S]*?(?:\*\/|(?![\s\S]))|\/\/[^\n]*)`,
    String.raw`(?<text>"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?)`,
    String.raw`(?<directive>^[ \t]*#[ \t]*\w*)`,
    String.raw`(?<number>\b(?:0[xX][0-9a-fA-F]+|\d+\.?\d*(?:[eE][+-]?\d+)?)[uUlLfF]*\b)`,
    String.raw`(?<keyword>\b(?:break|case|const|continue|default|do|else|enum|extern|for|goto|if|return|sizeof|static|struct|switch|typedef|union|volatile|while)\b)`,
    String.raw`(?<type>\b(?:_Bool|bool|char|double|float|int|long|short|signed|unsigned|void|u?int(?:8|16|32|64)_t|size_t)\b)`,
    String.raw`(?<name>\b[A-Za-z_]\w*(?=\s*\())`,
    String.raw`\w+|\s+|.`,
  ].join("|"),
  "gmy",
);

/** Lines, each a list of [class, text]. */
function lines(source) {
  const all = [[]];
  for (const match of source.matchAll(TOKENS)) {
    const kind = Object.entries(match.groups).find(([, text]) => text !== undefined)?.[0];
    match[0].split("\n").forEach((part, index) => {
      if (index > 0) all.push([]);
      if (part) all.at(-1).push([kind, part]);
    });
  }
  return all;
}

/** Parts of a line, with what lies in columns [from, to) marked. */
function mark(parts, from, to, name) {
  const marked = [];
  let column = 1;
  for (const [kind, text] of parts) {
    const [a, b] = [from - column, to - column].map((at) => Math.max(0, Math.min(text.length, at)));
    for (const [piece, wrong] of [[text.slice(0, a)], [text.slice(a, b), true], [text.slice(b)]]) {
      if (piece) marked.push([[kind, wrong && name].filter(Boolean).join(" "), piece]);
    }
    column += text.length;
  }
  return marked;
}

export class Editor {
  /** `onRun` is called for Ctrl+Enter, `onChange` when the text was changed by hand. */
  constructor(area, paint, { onRun, onChange }) {
    Object.assign(this, { area, paint, marks: [], leaving: false });
    area.addEventListener("input", () => {
      this.marks = [];
      this.draw();
      onChange();
    });
    area.addEventListener("focus", () => (this.leaving = false));
    area.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        onRun();
      } else if (event.key === "Escape") {
        this.leaving = true;
      } else if (event.key === "Tab" && !event.shiftKey && !this.leaving) {
        event.preventDefault();
        this.insert("\t");
      } else if (event.key === "Enter") {
        event.preventDefault();
        const before = area.value.slice(0, area.selectionStart);
        const indent = before.slice(before.lastIndexOf("\n") + 1).match(/^\t*/)[0];
        this.insert("\n" + indent + (/\{\s*$/.test(before) ? "\t" : ""));
      } else if (event.key === "}" && /(^|\n)\t+$/.test(area.value.slice(0, area.selectionStart))) {
        // It stands where the line stands that it ends.
        event.preventDefault();
        if (area.selectionStart === area.selectionEnd) area.setSelectionRange(area.selectionStart - 1, area.selectionEnd);
        this.insert("}");
      } else if (event.key !== "Shift" && event.key !== "Tab") {
        this.leaving = false;
      }
    });
  }

  get source() {
    return this.area.value;
  }

  set source(text) {
    this.area.value = text;
    this.area.setSelectionRange(0, 0);
    this.area.parentElement.scrollTo(0, 0);
    this.marks = [];
    this.draw();
  }

  /** Types a text, so that it can be undone. */
  insert(text) {
    if (!document.execCommand("insertText", false, text)) {
      this.area.setRangeText(text, this.area.selectionStart, this.area.selectionEnd, "end");
      this.area.dispatchEvent(new Event("input"));
    }
  }

  /** Shows what is wrong, where: `{line, column?, end_column?, message}`. */
  show(marks) {
    this.marks = marks;
    this.draw();
    this.paint.querySelector(".wrong")?.scrollIntoView({ block: "nearest", inline: "nearest" });
    // Line numbers stay in sight.
    this.area.parentElement.scrollLeft = 0;
  }

  /** Puts the caret there. */
  go(line, column = 1) {
    const before = this.source.split("\n").slice(0, line - 1);
    const at = before.reduce((sum, text) => sum + text.length + 1, 0) + column - 1;
    this.area.focus();
    this.area.setSelectionRange(at, at);
  }

  draw() {
    this.area.setAttribute("aria-invalid", String(this.marks.length > 0));
    const rows = lines(this.source).map((parts, index) => {
      const here = this.marks.filter((m) => m.line === index + 1);
      for (const { column, end_column: end } of here) {
        if (column) parts = mark(parts, column, Math.max(end ?? 0, column + 1), "error");
      }
      const row = el("span", { class: here.length ? "line wrong" : "line" });
      row.append(...parts.map(([kind, text]) => (kind ? el("span", { class: kind }, text) : text)));
      if (here.length) row.append(el("span", { class: "note" }, here[0].message));
      return row;
    });
    this.paint.replaceChildren(...rows);
  }
}
