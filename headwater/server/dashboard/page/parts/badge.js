// A state as a coloured word, and how many tasks are in which state.
import { html } from "../dom.js";

const TONES = {
  RUNNING: "good",
  COMPLETED: "good",
  OK: "good",
  FINISHED: "done",
  LOW: "warn",
  CREATED: "wait",
  INITIALIZING: "wait",
  SCHEDULED: "wait",
  DEPLOYING: "wait",
  RECONCILING: "wait",
  IN_PROGRESS: "wait",
  RESTARTING: "warn",
  SUSPENDED: "warn",
  CANCELLING: "warn",
  CANCELING: "warn",
  CANCELED: "off",
  FAILING: "bad",
  FAILED: "bad",
  HIGH: "bad",
};

export const toneOf = (state) => TONES[String(state).toUpperCase()] || "off";

export const State = ({ of: state }) => html`<span class="badge ${toneOf(state)}">${String(state).toLowerCase().replaceAll("_", " ")}</span>`;

const ORDER = ["running", "finished", "failed", "canceled", "canceling", "initializing", "deploying", "scheduled", "created", "reconciling"];

/** Flink's `tasks: {running: 4, finished: 1, …}` as small numbered squares; states without tasks are left out. */
export function TaskCounts({ of: counts = {} }) {
  const shown = ORDER.map((state) => [state, counts[state] ?? counts[state.toUpperCase()] ?? 0]).filter(([, number]) => number > 0);
  if (!shown.length) return html`<span class="dim">none</span>`;
  return html`<span class="task-counts">
    ${shown.map(([state, number]) => html`<span class="count ${toneOf(state)}" title="${number} ${state}">${number}<span class="sr"> ${state}</span></span>`)}
  </span>`;
}

export const isOver = (state) => ["FINISHED", "FAILED", "CANCELED"].includes(state);
