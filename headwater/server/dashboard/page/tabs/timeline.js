// When each vertex and each of its subtasks was in which state: one bar each, on one axis of time.
import { get, path } from "../api.js";
import { html, useEffect, useState } from "../dom.js";
import { clock, duration, time } from "../format.js";
import { toneOf } from "../parts/badge.js";
import { Card } from "../parts/figure.js";

const STATES = ["CREATED", "SCHEDULED", "DEPLOYING", "INITIALIZING", "RUNNING", "CANCELING", "FINISHED", "CANCELED", "FAILED"];
const ENDS = new Set(["FINISHED", "CANCELED", "FAILED"]);

export function TimeLineTab({ job }) {
  const [open, setOpen] = useState(null);
  const from = Math.min(job["start-time"], ...job.vertices.map((vertex) => vertex["start-time"]).filter((ms) => ms > 0));
  const to = job["end-time"] > 0 ? job["end-time"] : job.now || Date.now();
  const subtasks = useSubtaskTimes(job.jid, open, job.now);
  return html`
    <${Card} title="Job"><${Lane} name=${job.name} spans=${jobSpans(job, to)} from=${from} to=${to} /><${Axis} from=${from} to=${to} /><//>
    <${Card} title="Vertices">
      ${job.vertices.map(
        (vertex) => html`
          <div key=${vertex.id}>
            <${Lane} name=${vertex.name} spans=${vertexSpans(vertex, job, to)} from=${from} to=${to} isOpen=${open === vertex.id} onToggle=${() => setOpen(open === vertex.id ? null : vertex.id)} />
            ${open === vertex.id && (subtasks || []).map((subtask) => html`<${Lane} key=${subtask.subtask} small name="subtask ${subtask.subtask} · ${subtask.endpoint}" spans=${stateSpans(subtask.timestamps, to)} from=${from} to=${to} />`)}
          </div>
        `,
      )}
      <${Axis} from=${from} to=${to} />
    <//>
    <p class="lane-legend">${["CREATED", "DEPLOYING", "RUNNING", "FINISHED", "CANCELED", "FAILED"].map((state) => html`<span key=${state}><i class="span ${laneTone(state)}"></i>${state.toLowerCase()}</span>`)}</p>
  `;
}

function useSubtaskTimes(jobId, vertexId, round) {
  const [found, setFound] = useState(null);
  useEffect(() => {
    if (!vertexId) return;
    get(path`jobs/${jobId}/vertices/${vertexId}/subtasktimes`).then((data) => setFound({ vertexId, subtasks: data.subtasks }), () => {});
  }, [jobId, vertexId, round]);
  return found?.vertexId === vertexId ? found.subtasks : null;
}

/** Job states come and go (a restart is RUNNING again), so only the last time of each is known. */
const jobSpans = (job, to) => spansOf(Object.entries(job.timestamps).filter(([, ms]) => ms > 0), to, job["end-time"] > 0);

const vertexSpans = (vertex, job, to) => {
  if (!(vertex["start-time"] > 0)) return [];
  const end = vertex["end-time"] > 0 ? vertex["end-time"] : to;
  return [{ state: vertex.status, from: Math.max(vertex["start-time"], job.timestamps.RUNNING || 0), to: end }];
};

const stateSpans = (timestamps, to) => spansOf(STATES.map((state) => [state, timestamps[state]]).filter(([, ms]) => ms > 0), to);

function spansOf(entries, to) {
  const sorted = [...entries].sort((a, b) => a[1] - b[1]);
  return sorted.map(([state, ms], index) => ({ state, from: ms, to: sorted[index + 1]?.[1] ?? (ENDS.has(state) ? ms : to) }));
}

const laneTone = (state) => (state === "RUNNING" ? "good" : state === "FINISHED" ? "done" : toneOf(state));

function Lane({ name, spans, from, to, small = false, isOpen, onToggle }) {
  const width = Math.max(1, to - from);
  const style = (span) => ({ left: `${((span.from - from) / width) * 100}%`, width: `${Math.max(0.3, ((span.to - span.from) / width) * 100)}%` });
  return html`
    <div class="lane ${small ? "small" : ""}">
      ${onToggle
        ? html`<button class="plain lane-name" aria-expanded=${String(isOpen)} onClick=${onToggle} title=${name}>${isOpen ? "▾" : "▸"} ${name}</button>`
        : html`<span class="lane-name" title=${name}>${name}</span>`}
      <div class="lane-bars">
        ${spans.map((span) => html`<span key=${span.state} class="span ${laneTone(span.state)}" style=${style(span)} title="${span.state}: ${time(span.from)}, ${duration(span.to - span.from)}"><span class="span-text">${span.state.toLowerCase()} ${duration(span.to - span.from)}</span></span>`)}
      </div>
    </div>
  `;
}

const Axis = ({ from, to }) => html`
  <div class="lane axis" aria-hidden="true"><span class="lane-name"></span><div class="lane-bars">${[0, 0.25, 0.5, 0.75, 1].map((share) => html`<span key=${share} class="tick" style=${{ left: `${share * 100}%` }}>${clock(from + (to - from) * share)}</span>`)}</div></div>
`;
