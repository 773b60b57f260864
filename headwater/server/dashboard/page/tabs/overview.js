// The graph, what is found wrong, live charts, and the vertices as a table.
import { Chart } from "../charts.js";
import { html, useState } from "../dom.js";
import { bytes, count, duration, percent, perSecond } from "../format.js";
import { Graph } from "../graph/graph.js";
import { edgeRates, nodesOf, seriesOf } from "../model.js";
import { Findings } from "../parts/findings.js";
import { Bar, Card } from "../parts/figure.js";
import { State, TaskCounts } from "../parts/badge.js";
import { Table } from "../parts/table.js";
import { VertexDrawer } from "../parts/vertex-drawer.js";
import { WhyPanel } from "../parts/why.js";

export function OverviewTab({ job, live: figures, over }) {
  const [chosen, setChosen] = useState(null);
  const live = over ? { history: figures?.history } : figures; // nothing flows any more; the charts show how it was
  const nodes = nodesOf(job, live);
  const vertex = nodes.find((node) => node.id === chosen);
  return html`
    <div class="graph-and-drawer">
      <${Graph} nodes=${nodes} rates=${edgeRates(nodes, live)} chosen=${chosen} onChoose=${(id) => setChosen(id === chosen ? null : id)} />
      ${vertex && html`<${VertexDrawer} key=${vertex.id} job=${job} vertex=${vertex} live=${live} onClose=${() => setChosen(null)} />`}
    </div>
    <${Findings} findings=${live?.findings} />
    ${!over && html`<${WhyPanel} jobId=${job.jid} live=${live} />`}
    ${live?.history && html`<${Charts} live=${live} />`}
    <${Card} title="Vertices"><${Vertices} nodes=${nodes} onChoose=${setChosen} /><//>
  `;
}

function Charts({ live }) {
  const times = live.history?.time || [];
  const line = (name, series, color) => ({ name, values: seriesOf(live, series), color });
  return html`
    <div class="charts">
      <${Chart} title="Throughput" times=${times} format=${perSecond} series=${[line("in", "numRecordsInPerSecond", "--chart-1"), line("out", "numRecordsOutPerSecond", "--chart-2")]} />
      <${Chart} title="Latency" times=${times} format=${duration} series=${[line("end to end", "outputLatency", "--chart-3"), line("epoch", "epochDuration", "--chart-4")]} />
      <${Chart} title="Checkpoint duration" times=${times} format=${duration} series=${[line("duration", "lastCheckpointDuration", "--chart-5")]} note="No checkpoint yet" />
    </div>
  `;
}

const Flow = ({ total, rate }) => html`${count(total)}<small class="below">${perSecond(rate)}</small>`;

function Vertices({ nodes, onChoose }) {
  const columns = [
    { title: "Name", cell: (node) => html`<button class="plain link clip" title=${node.name} onClick=${() => onChoose(node.id)}>${node.name}</button>`, value: (node) => node.name, grow: true },
    { title: "Status", cell: (node) => html`<${State} of=${node.status} />` },
    { title: "Records in", cell: (node) => html`<${Flow} total=${node.totalIn} rate=${node.in} />`, value: (node) => node.totalIn, right: true },
    { title: "Records out", cell: (node) => html`<${Flow} total=${node.totalOut} rate=${node.out} />`, value: (node) => node.totalOut, right: true },
    { title: "Busy", cell: (node) => html`<${Bar} share=${node.busy} text=${percent(node.busy)} tone="busy" />`, value: (node) => node.busy },
    { title: "Back-pressured", cell: (node) => html`<${Bar} share=${node.backPressured} text=${percent(node.backPressured)} tone="held" />`, value: (node) => node.backPressured },
    { title: "State", cell: (node) => html`${node.stateEntries ? count(node.stateEntries) : "–"}${node.stateBytes ? html`<small class="below">${bytes(node.stateBytes)}</small>` : null}`, value: (node) => node.stateEntries, right: true },
    { title: "Par.", cell: (node) => node.parallelism, value: (node) => node.parallelism, right: true },
    { title: "Tasks", cell: (node) => html`<${TaskCounts} of=${node.tasks} />` },
  ];
  return html`<${Table} caption="Vertices" columns=${columns} rows=${nodes} rowKey=${(node) => node.id} />`;
}
