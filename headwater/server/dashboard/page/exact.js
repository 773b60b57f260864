// JSON that shows as it was sent: numbers that a double would change, such as ids beyond 2^53, keep their digits.

const STRINGS_AND_NUMBERS = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/g;
const MARK = "\ud800"; // followed by a digit it is no text that a server can send

/** A number as the server wrote it. */
class Exact {
  constructor(digits) {
    this.digits = digits;
  }
  toJSON() {
    return MARK + this.digits;
  }
}

/** Parse an answer. Numbers that would change become objects that `text` writes as they were. */
export function parse(json) {
  const marked = json.replace(STRINGS_AND_NUMBERS, (token) => (token[0] === '"' || String(Number(token)) === token ? token : `"\\ud800${token}"`));
  return JSON.parse(marked, (_, value) => (typeof value === "string" && /^\ud800[-\d]/.test(value) ? new Exact(value.slice(1)) : value));
}

/** What JSON.stringify gives, with those numbers as they were. */
export const text = (value, indent) => JSON.stringify(value, null, indent).replace(/"\\ud800([-\d][^"]*)"/g, "$1");
