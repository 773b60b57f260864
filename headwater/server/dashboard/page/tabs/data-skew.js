// How evenly records are spread over the subtasks of each vertex, and which keys are hot.
import { html } from "../dom.js";
import { percent, whole } from "../format.js";
import { figuresOf, nodesOf, skew } from "../model.js";
import { Bar, Card } from "../parts/figure.js";
import { Empty } from "../parts/notice.js";
import { Table } from "../parts/table.js";

const TONES = [[10, "good"], [50, "warn"], [Infinity, "bad"]];

export function DataSkewTab({ job, live }) {
  if (!live) return html`<${Empty} title="No live figures">Skew is measured while the job runs.<//>`;
  const rows = nodesOf(job, live).map((node) => {
    const { subtasks, hotKeys = [] } = figuresOf(live, node.id);
    const received = subtasks.map((subtask) => Number(subtask[node.isSource ? "numRecordsOut" : "numRecordsIn"] ?? 0));
    return { ...node, received, hotKeys, skew: skew(received) };
  });
  rows.sort((a, b) => b.skew - a.skew);
  return html`
    <p class="hint">Skew is how far subtasks are from their mean, in per cent: 0 % is even; at 50 % the busiest ones do most of the work, and the job is as fast as they are.</p>
    ${rows.map((row) => html`<${Vertex} key=${row.id} row=${row} />`)}
  `;
}

function Vertex({ row }) {
  const most = Math.max(1, ...row.received);
  const tone = TONES.find(([limit]) => row.skew < limit || limit === Infinity)[1];
  const columns = [
    { title: "Subtask", cell: ({ index }) => index },
    { title: row.isSource ? "Records emitted" : "Records received", cell: ({ number }) => html`<${Bar} share=${number / most} text=${whole(number)} />`, grow: true },
    { title: "Share", cell: ({ number }) => percent(number / Math.max(1, row.received.reduce((a, b) => a + b, 0))), right: true },
  ];
  return html`
    <${Card} title=${row.name} aside=${html`<span class="badge ${tone}">skew ${Math.round(row.skew)} %</span>`}>
      <${Table} caption="Records per subtask of ${row.name}" columns=${columns} rows=${row.received.map((number, index) => ({ index, number }))} rowKey=${({ index }) => index} empty="No figures yet." />
      ${row.hotKeys.length > 0 && html`<p class="card-body">Most frequent keys: ${row.hotKeys.map((hot) => html`<span key=${hot.key} class="hot-key"><code>${hot.key}</code> ${percent(hot.share)}</span>`)}</p>`}
    <//>
  `;
}
