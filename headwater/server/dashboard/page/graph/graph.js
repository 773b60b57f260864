// The job graph: nodes coloured by how busy or held back they are, records per second on the edges.
import { html, useMemo } from "../dom.js";
import { count, isTime, percent, perSecond, time, watermark } from "../format.js";
import { toneOf } from "../parts/badge.js";
import { NODE, edgePath, layered } from "./layout.js";
import { useZoom } from "./zoom.js";

/**
 * `nodes`: `{id, name, parallelism, inputs: [{id, ship}], status, busy, backPressured, in, out, watermark, lag, finding}`;
 * shares from 0 to 1, rates per second. `edges`: `{"source target": rate}`.
 */
export function Graph({ nodes, rates, chosen, onChoose }) {
  const shape = nodes.map((node) => `${node.id}<${node.inputs.map((input) => input.id)}`).join();
  const { positions, width, height } = useMemo(() => layered(nodes.map(({ id, inputs }) => ({ id, inputs: inputs.map((each) => each.id) }))), [shape]);
  const { ref, view, zoom, fit, onKeyDown } = useZoom(width, height);
  const move = { transform: `translate(${view.x}px, ${view.y}px) scale(${view.k})` };
  const edges = nodes.flatMap((node) => node.inputs.filter((input) => input.id in positions).map((input) => ({ from: input.id, to: node.id, ship: input.ship })));

  return html`
    <div class="graph" ref=${ref} tabindex="0" role="group" aria-label="Job graph; plus and minus zoom, arrows move, 0 fits" onKeyDown=${onKeyDown}>
      <div class="canvas" style=${move}>
        <svg class="edges" width=${width} height=${height} aria-hidden="true">
          <defs><marker id="arrow" viewBox="0 0 8 8" refX="2" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" /></marker></defs>
          ${edges.map(({ from, to, ship }) => html`<${Edge} key="${from} ${to}" path=${edgePath(positions[from], positions[to])} ship=${ship} rate=${rates[`${from} ${to}`]} />`)}
        </svg>
        ${nodes.map((node) => html`<${Node} key=${node.id} node=${node} at=${positions[node.id]} isChosen=${node.id === chosen} onChoose=${() => onChoose(node.id)} />`)}
      </div>
      <div class="zoom-buttons">
        <button aria-label="Zoom in" onClick=${() => zoom(1.25)}>+</button>
        <button aria-label="Zoom out" onClick=${() => zoom(0.8)}>−</button>
        <button aria-label="Fit the graph into its frame" onClick=${fit}>⤢</button>
      </div>
      <${Legend} />
    </div>
  `;
}

function Edge({ path, ship, rate }) {
  const flows = rate > 0;
  return html`
    <g class="edge ${flows ? "flows" : ""}">
      <path d=${path.d} marker-end="url(#arrow)" />
      <text x=${path.label.x} y=${path.label.y - 8}>${rate === undefined ? "" : perSecond(rate)}</text>
      <text class="ship" x=${path.label.x} y=${path.label.y + 16}>${ship}</text>
    </g>
  `;
}

function Node({ node, at, isChosen, onChoose }) {
  const place = { left: `${at.x}px`, top: `${at.y}px`, width: `${NODE.width}px`, height: `${NODE.height}px` };
  const heat = { "--busy-share": `${share(node.busy)}%`, "--held-share": `${share(node.backPressured)}%` };
  return html`
    <button class="node ${toneOf(node.status)} ${isChosen ? "chosen" : ""}" style=${{ ...place, ...heat }} aria-pressed=${String(isChosen)} onClick=${onChoose} data-vertex=${node.id}>
      <span class="node-name" title=${node.name}>${node.name}</span>
      <span class="node-line"><span>Parallelism ${node.parallelism}</span><span class="node-status">${String(node.status).toLowerCase()}</span></span>
      <span class="node-heat">
        <${Heat} name="Busy" tone="busy" value=${node.busy} /><${Heat} name="Backpressure" tone="held" value=${node.backPressured} />
      </span>
      <span class="node-line numbers"><span title="Records in">↓ ${perSecond(node.in)}</span><span title="Records out">↑ ${perSecond(node.out)}</span>${node.stateEntries ? html`<span title="Entries of state">◆ ${count(node.stateEntries)}</span>` : null}</span>
      <span class="node-line watermark" title="Watermark: ${watermark(node.watermark)}"><span>Watermark</span><span>${isTime(node.watermark) ? time(node.watermark) : watermark(node.watermark)}</span></span>
      ${node.finding && html`<span class="node-finding" title=${node.finding}>!</span>`}
    </button>
  `;
}

const share = (value) => Math.round(Math.max(0, Math.min(1, value || 0)) * 100);

const Heat = ({ name, tone, value }) => html`<span class="heat ${tone}" title="${name}: ${percent(value)}"><span class="heat-name">${name}</span><b>${percent(value)}</b></span>`;

const Legend = () => html`
  <div class="graph-legend" aria-hidden="true">
    <span>idle</span><i class="ramp busy"></i><span>busy</span><i class="ramp held"></i><span>back-pressured</span>
  </div>
`;
