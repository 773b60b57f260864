// Numbers, sizes, durations and times as people read them. Everything answers "–" for what is not known.

const NONE = "–";
const known = (value) => value !== null && value !== undefined && Number.isFinite(Number(value));

/** 1234567 → "1.23 M"; small numbers stay as they are. */
export function count(value) {
  if (!known(value)) return NONE;
  return scaled(Number(value), 1000, ["", " k", " M", " G", " T", " P"]);
}

export const perSecond = (value) => (known(value) ? `${count(value)}/s` : NONE);

export function bytes(value) {
  if (!known(value)) return NONE;
  return scaled(Number(value), 1024, [" B", " KB", " MB", " GB", " TB", " PB"]);
}

function scaled(number, base, units) {
  let unit = 0;
  while (Math.abs(number) >= base && unit < units.length - 1) {
    number /= base;
    unit += 1;
  }
  const digits = unit === 0 ? (Number.isInteger(number) ? 0 : Math.abs(number) < 10 ? 2 : 1) : Math.abs(number) < 10 ? 2 : Math.abs(number) < 100 ? 1 : 0;
  return number.toFixed(digits) + units[unit];
}

/** All digits, in groups: for tables in which one compares. */
export const whole = (value) => (known(value) ? Number(value).toLocaleString("en-US", { maximumFractionDigits: 2 }) : NONE);

export const percent = (share) => (known(share) ? `${Math.round(Number(share) * 100)} %` : NONE);

/** "1.5 ms", "250 ms", "3.2 s", "2m 5s", "3h 4m", "5d 2h". */
export function duration(ms) {
  if (!known(ms) || ms < 0) return NONE;
  if (ms < 1000) return `${ms < 10 && !Number.isInteger(ms) ? ms.toFixed(1) : Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}m ${Math.floor(seconds % 60)}s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return `${hours}h ${minutes % 60}m`;
  return `${Math.floor(hours / 24)}d ${hours % 24}h`;
}

const two = (number) => String(number).padStart(2, "0");

/** "2026-01-31 12:00:05" in the browser's time zone; with `ms` also ".250". */
export function time(ms, { withMs = false } = {}) {
  if (!known(ms) || ms < 0) return NONE;
  const date = new Date(Number(ms));
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${clock(ms)}${withMs ? `.${String(date.getMilliseconds()).padStart(3, "0")}` : ""}`;
}

export function clock(ms) {
  const date = new Date(Number(ms));
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

const NO_WATERMARK = -9223372036854775808;
const END_OF_TIME = 9223372036854775807;

/** A watermark is event time; before the first one and after the last one it is a word. */
export function watermark(value) {
  if (!known(value) || Number(value) <= NO_WATERMARK + 1e6) return "none yet";
  if (Number(value) >= END_OF_TIME - 1e6) return "end of input";
  return time(value, { withMs: true });
}

export const isTime = (value) => known(value) && Number(value) > NO_WATERMARK + 1e6 && Number(value) < END_OF_TIME - 1e6;
