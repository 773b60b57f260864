// Keyed state of the running job: what there is and how big, the value of a key, the keys one after another.
import { get, path } from "../api.js";
import { html, useState } from "../dom.js";
import { bytes, count, percent } from "../format.js";
import { Card, Facts } from "../parts/figure.js";
import { Empty, Fetched, Problem } from "../parts/notice.js";
import { Table } from "../parts/table.js";
import { usePolled } from "../poll.js";

const PAGE = 25;

export function StateTab({ job, live, over }) {
  const found = usePolled(over ? null : path`jobs/${job.jid}/state`, 5000);
  const [chosen, setChosen] = useState(null);
  if (over) return html`<${Empty} title="The job is over">State can be asked while a job runs; what it left is in its savepoints.<//>`;
  return html`<${Fetched} of=${found} title="The state cannot be read">
    ${({ operators, epoch }) => {
      if (!operators.length) return html`<${Empty} title="No keyed state">No operator of this job keeps state by key.<//>`;
      const states = operators.flatMap((operator) => operator.states.map((state) => ({ ...state, operator })));
      const current = states.find((state) => idOf(state) === chosen) || states[0];
      return html`
        <div class="state-browser">
          <${Card} title="States" aside=${epoch !== undefined && html`<span class="dim">epoch ${epoch}</span>`}><${StateList} operators=${operators} chosen=${idOf(current)} onChoose=${setChosen} /><//>
          <div class="state-side"><${Lookup} key=${idOf(current)} jobId=${job.jid} state=${current} /><${HotKeys} live=${live} /></div>
        </div>
      `;
    }}
  <//>`;
}

const idOf = (state) => `${state.operator.uid}\n${state.name}`;

function StateList({ operators, chosen, onChoose }) {
  return operators.map(
    (operator) => html`
      <div class="state-group" key=${operator.uid}>
        <h3 title=${operator.uid}>${operator.name || operator.uid}${operator.key_type && html` <small>by ${operator.key_type}</small>`}</h3>
        ${operator.states.map((state) => {
          const id = idOf({ ...state, operator });
          return html`
            <button key=${id} class="state-item" aria-pressed=${String(id === chosen)} onClick=${() => onChoose(id)}>
              <span><b>${state.name}</b> <small>${[state.kind, state.type].filter(Boolean).join(" · ")}</small></span>
              <span class="dim">${[state.entries !== undefined && state.entries !== null && `${count(state.entries)} entries`, state.bytes && bytes(state.bytes)].filter(Boolean).join(" · ")}</span>
            </button>
          `;
        })}
      </div>
    `,
  );
}

function Lookup({ jobId, state }) {
  const [key, setKey] = useState("");
  const [isolation, setIsolation] = useState("committed");
  const [answer, setAnswer] = useState(null);
  const base = path`jobs/${jobId}/state/${state.operator.uid}/${state.name}`;

  async function ask(url, kind) {
    try {
      setAnswer({ kind, data: await get(url) });
    } catch (error) {
      setAnswer({ kind, error });
    }
  }
  const look = (event) => {
    event.preventDefault();
    ask(`${base}/${encodeURIComponent(key)}?isolation=${isolation}`, "value");
  };
  const browse = (after) => ask(`${base}?limit=${PAGE}&isolation=${isolation}${after === undefined ? "" : `&after=${encodeURIComponent(after)}`}`, "page");
  return html`
    <${Card} title=${`${state.operator.name || state.operator.uid} / ${state.name}`}>
      <form class="lookup" onSubmit=${look}>
        <label>Key (JSON)<input required value=${key} placeholder=${'42, "user-7", ["a", 1]'} onInput=${(event) => setKey(event.target.value)} /></label>
        <label>Isolation<select value=${isolation} onChange=${(event) => setIsolation(event.target.value)}><option value="committed">committed</option><option value="live">live</option></select></label>
        <button class="primary">Look up</button>
        <button type="button" onClick=${() => browse()}>Browse keys</button>
      </form>
      <div class="card-body" aria-live="polite">
        ${!answer
          ? html`<p class="dim">Look a key up, or browse. <i>Committed</i> is the value as of the last completed checkpoint; <i>live</i> is what the slot has this moment.</p>`
          : answer.error
            ? html`<${Problem} error=${answer.error} title=${answer.error.status === 404 ? "Not found" : "The state did not answer"} />`
            : answer.kind === "value"
              ? html`<${Value} answer=${answer.data} />`
              : html`<${Page} page=${answer.data} onMore=${browse} />`}
      </div>
    <//>
  `;
}

const Value = ({ answer }) => html`
  <pre class="value">${shown(answer.value)}</pre>
  <${Facts} rows=${[["Isolation", answer.isolation], ["Epoch", answer.epoch], ["Partition", answer.partition]]} />
`;

function Page({ page, onMore }) {
  const columns = [
    { title: "Key", cell: (row) => html`<code>${JSON.stringify(row.key)}</code>` },
    { title: "Value", cell: (row) => html`<code class="wrap">${JSON.stringify(row.value)}</code>`, grow: true },
  ];
  return html`
    <${Table} caption="Keys" columns=${columns} rows=${page.entries} rowKey=${(row) => JSON.stringify(row.key)} empty="No key has a value." />
    ${page.next !== undefined && page.next !== null && html`<p><button onClick=${() => onMore(page.next)}>Next ${PAGE}</button></p>`}
  `;
}

const shown = (value) => (typeof value === "string" ? JSON.stringify(value) : JSON.stringify(value, null, 2));

function HotKeys({ live }) {
  const rows = Object.entries(live?.vertices || {}).flatMap(([vertex, figures]) => (figures.hotKeys || []).map((hot) => ({ ...hot, vertex })));
  const columns = [
    { title: "Key", cell: (row) => html`<code>${row.key}</code>`, grow: true },
    { title: "Operator", cell: (row) => row.operator },
    { title: "Share of records", cell: (row) => percent(row.share), value: (row) => row.share, right: true },
  ];
  return html`<${Card} title="Hot keys"><${Table} caption="Hot keys" columns=${columns} rows=${rows} rowKey=${(row) => `${row.vertex} ${row.key}`} empty="No key stands out." /><//>`;
}
