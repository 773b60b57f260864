// Event time: where each subtask of each vertex is, and how far behind the furthest one.
import { path } from "../api.js";
import { html } from "../dom.js";
import { duration, isTime, time, watermark } from "../format.js";
import { figuresOf } from "../model.js";
import { Card } from "../parts/figure.js";
import { Fetched } from "../parts/notice.js";
import { Table } from "../parts/table.js";
import { usePolled } from "../poll.js";

export const WatermarksTab = ({ job, live }) => html`
  <p class="hint">A watermark says that no earlier record is expected. A vertex is as far as its slowest subtask; windows close when it passes their end.</p>
  ${job.vertices.map((vertex) => html`<${Vertex} key=${vertex.id} job=${job} vertex=${vertex} live=${live} />`)}
`;

function Vertex({ job, vertex, live }) {
  const found = usePolled(path`jobs/${job.jid}/vertices/${vertex.id}/watermarks`);
  const { subtasks, channels = [] } = figuresOf(live, vertex.id);
  return html`
    <${Card} title=${vertex.name}>
      <${Fetched} of=${found}>${(marks) => html`<${Subtasks} marks=${marks} figures=${subtasks} />`}<//>
      ${channels.length > 0 && html`<${Channels} channels=${channels} />`}
    <//>
  `;
}

/** What the vertex waits for: its watermark is the lowest of these, but for idle ones. */
function Channels({ channels }) {
  const columns = [
    { title: "Waits for", cell: (row) => row.channel, value: (row) => row.channel, grow: true },
    { title: "Watermark", cell: (row) => watermark(row.watermark), value: (row) => row.watermark },
    { title: "Last record", cell: (row) => (row.silent_since === null ? "–" : time(row.silent_since)), value: (row) => row.silent_since, right: true },
    { title: "Idle", cell: (row) => (row.idle ? "idle: not waited for" : "–") },
  ];
  return html`<${Table} caption="Channels" columns=${columns} rows=${channels} rowKey=${(row) => row.channel} />`;
}

function Subtasks({ marks, figures }) {
  const rows = marks.map(({ id, value }) => ({ subtask: parseInt(id, 10), value: Number(value) })).sort((a, b) => a.subtask - b.subtask);
  const furthest = Math.max(...rows.map((row) => row.value).filter(isTime));
  const behind = (row) => (isTime(row.value) && Number.isFinite(furthest) ? furthest - row.value : undefined);
  const columns = [
    { title: "Subtask", cell: (row) => row.subtask, value: (row) => row.subtask },
    { title: "Watermark", cell: (row) => watermark(row.value), value: (row) => row.value, grow: true },
    { title: "Behind the furthest", cell: (row) => duration(behind(row)), value: behind, right: true },
    { title: "Behind the clock", cell: (row) => duration(figures[row.subtask]?.watermarkLag), value: (row) => figures[row.subtask]?.watermarkLag, right: true },
    { title: "Late records dropped", cell: (row) => figures[row.subtask]?.numLateRecordsDropped ?? "–", right: true },
  ];
  return html`<${Table} caption="Watermarks" columns=${columns} rows=${rows} rowKey=${(row) => row.subtask} empty="This vertex has no watermark: no timestamps are assigned before it." />`;
}
