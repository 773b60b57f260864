// Where a vertex spends its time: its slots' stacks, sampled for a second. The outermost frame is on top.
import { path } from "../api.js";
import { html, useState } from "../dom.js";
import { time } from "../format.js";
import { Card } from "../parts/figure.js";
import { Empty, Fetched } from "../parts/notice.js";
import { usePolled } from "../poll.js";

const KINDS = [
  ["full", "Mixed"],
  ["on_cpu", "On the processor"],
  ["off_cpu", "Waiting"],
];
const NARROWEST = 0.004; // of the whole: thinner frames cannot be seen

export function FlameGraphTab({ job, over }) {
  const [chosen, setChosen] = useState(null);
  const [kind, setKind] = useState("full");
  const vertex = chosen ?? (job.vertices.find(({ name }) => !name.startsWith("Source")) ?? job.vertices[0])?.id;
  const found = usePolled(over || !vertex ? null : path`jobs/${job.jid}/vertices/${vertex}/flamegraph` + `?type=${kind}`, 0);
  if (over) return html`<${Empty} title="The job is over">Only what runs can be sampled.<//>`;
  return html`
    <${Card} title="Flame graph">
      <div class="flame-choice">
        <label>Vertex <select value=${vertex} onChange=${(event) => setChosen(event.target.value)}>
          ${job.vertices.map(({ id, name }) => html`<option key=${id} value=${id}>${name}</option>`)}
        </select></label>
        <label>Samples <select value=${kind} onChange=${(event) => setKind(event.target.value)}>
          ${KINDS.map(([value, title]) => html`<option key=${value} value=${value}>${title}</option>`)}
        </select></label>
        <button onClick=${found.refresh}>Sample again</button>
      </div>
      <${Fetched} of=${found} title="The slots could not be sampled">${(graph) => html`<${Graph} key=${graph.endTimestamp} graph=${graph} />`}<//>
    <//>
  `;
}

function Graph({ graph: { data, endTimestamp } }) {
  const [top, setTop] = useState(null);
  if (data === null) return html`<${Empty} title="This vertex cannot be sampled">It has no keyed state, so Spark's workers run it: py-spy shows what those do.<//>`;
  if (data.value === 0) return html`<${Empty} title="No sample">No thread was in this state while it was looked at.<//>`;
  return html`
    <div class="card-body"><p class="hint">${data.value} samples until ${time(endTimestamp)}. A frame is as wide as the part of the samples that go through it; choose one to see it over the whole width.${top && html` <button class="link" onClick=${() => setTop(null)}>Whole graph</button>`}</p>
    <div class="flames"><${Flame} node=${top ?? data} whole=${(top ?? data).value} choose=${setTop} /></div></div>
  `;
}

function Flame({ node, whole, choose }) {
  const part = (value) => `${((100 * value) / whole).toFixed(1)} %`;
  const shown = node.children.filter(({ value }) => value / whole >= NARROWEST);
  return html`
    <div class="flame" style=${`flex: ${node.value} 1 0`}>
      <button style=${`--hue: ${hue(node.name)}`} title=${`${node.name}: ${node.value} samples, ${part(node.value)}`} onClick=${() => choose(node)}>${node.name}</button>
      ${shown.length > 0 && html`<div class="flame-row">
        ${shown.map((child) => html`<${Flame} key=${child.name} node=${child} whole=${whole} choose=${choose} />`)}
        <span style=${`flex: ${node.value - shown.reduce((sum, { value }) => sum + value, 0)} 1 0`}></span>
      </div>`}
    </div>
  `;
}

/** One colour per module. */
const hue = (name) => [...name.split(".").slice(0, 3).join(".")].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 360, 7);
