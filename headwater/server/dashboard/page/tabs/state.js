// Keyed state of the running job: what there is and how big, the value of a key, the keys one after another.
import { get, path } from "../api.js";
import { html, useState } from "../dom.js";
import { text } from "../exact.js";
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
    ${({ operators }) => {
      if (!operators.length) return html`<${Empty} title="No keyed state">No operator of this job keeps state by key.<//>`;
      const states = operators.flatMap((operator) => operator.states.map((state) => ({ ...state, operator })));
      const current = states.find((state) => idOf(state) === chosen) || states[0];
      return html`
        <div class="state-browser">
          <div class="state-side">
            <${Card} title="States"><${StateList} operators=${operators} chosen=${idOf(current)} onChoose=${setChosen} /><//>
            <${Sizes} live=${live} />
          </div>
          <div class="state-side state-lookup"><${Lookup} key=${idOf(current)} jobId=${job.jid} state=${current} /><${HotKeys} live=${live} /></div>
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
        <h3 title=${operator.uid}>${operator.name || operator.uid} <small>epoch ${operator.epoch}</small></h3>
        ${operator.states.map((state) => {
          const id = idOf({ ...state, operator });
          return html`
            <button key=${id} class="state-item" aria-pressed=${String(id === chosen)} onClick=${() => onChoose(id)}>
              <span><b>${state.name}</b> <small>${[state.kind, state.type, state.ttl && "TTL"].filter(Boolean).join(" · ")}</small></span>
              <span class="dim">${count(state.entries)} ${state.entries === 1 ? "key" : "keys"} · ~${bytes(state.estimated_bytes)}</span>
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
      setAnswer({ kind, data: await get(url, { exact: true }) });
    } catch (error) {
      setAnswer({ kind, error });
    }
  }
  const look = (event) => {
    event.preventDefault();
    ask(`${base}/${encodeURIComponent(key)}?isolation=${isolation}`, "value");
  };
  const browse = (page) => ask(`${base}?limit=${PAGE}&isolation=${isolation}${page === undefined ? "" : `&page=${encodeURIComponent(page)}`}`, "page");
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
  <pre class="value">${text(answer.value, 2)}</pre>
  <${Facts} rows=${[["Key", text(answer.key)], ["As of epoch", answer.epoch]]} />
`;

function Page({ page, onMore }) {
  const columns = [
    { title: "Key", cell: (row) => html`<code>${text(row.key)}</code>` },
    { title: "Value", cell: (row) => html`<code class="wrap">${text(row.value)}</code>`, grow: true },
  ];
  return html`
    <${Table} caption="Keys" columns=${columns} rows=${page.values} rowKey=${(row) => text(row.key)} empty="No key has a value." />
    ${page["next-page"] !== null && html`<p><button onClick=${() => onMore(page["next-page"])}>Next ${PAGE}</button></p>`}
  `;
}

function Sizes({ live }) {
  const rows = Object.entries(live?.vertices || {}).flatMap(([id, { name, aggregate }]) => (aggregate.stateEntries === undefined ? [] : [{ id, name, ...aggregate }]));
  const columns = [
    { title: "Vertex", cell: (row) => row.name, grow: true },
    { title: "Keys", cell: (row) => count(row.stateEntries), value: (row) => row.stateEntries, right: true },
    { title: "Size", cell: (row) => bytes(row.stateBytes), value: (row) => row.stateBytes, right: true },
  ];
  return html`<${Card} title="Sizes"><${Table} caption="Sizes" columns=${columns} rows=${rows} rowKey=${(row) => row.id} empty="No figures yet." /><p class="card-body dim">Keys of all states of a vertex; size of what a restore of the last checkpoint reads.</p><//>`;
}

function HotKeys({ live }) {
  const rows = Object.entries(live?.vertices || {}).flatMap(([vertex, figures]) => (figures.hotKeys || []).map((hot) => ({ ...hot, vertex })));
  const columns = [
    { title: "Key", cell: (row) => html`<code>${row.key}</code>`, grow: true },
    { title: "Operator", cell: (row) => row.operator },
    { title: "Share of records", cell: (row) => percent(row.share), value: (row) => row.share, right: true },
  ];
  return html`<${Card} title="Hot keys"><${Table} caption="Hot keys" columns=${columns} rows=${rows} rowKey=${(row) => `${row.vertex} ${row.key}`} empty="No key stands out." /><//>`;
}
