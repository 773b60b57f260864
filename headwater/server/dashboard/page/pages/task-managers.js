// The executors: their slots and memory, and what each logs.
import { path } from "../api.js";
import { html, useState } from "../dom.js";
import { bytes, time, whole } from "../format.js";
import { Bar, Card } from "../parts/figure.js";
import { Fetched } from "../parts/notice.js";
import { Table } from "../parts/table.js";
import { usePolled } from "../poll.js";
import { Log } from "../tabs/logs.js";

export function TaskManagersPage() {
  const found = usePolled("taskmanagers");
  return html`
    <h1>Task Managers</h1>
    <p class="hint">Spark's executors. Each slot is a process beside one of them, which owns one partition of a stateful stage.</p>
    <${Fetched} of=${found} title="The task managers cannot be read">${({ taskmanagers }) => html`<${Card}><${Managers} rows=${taskmanagers} /><//>`}<//>
  `;
}

function Managers({ rows }) {
  const used = (row) => row.slotsNumber - row.freeSlots;
  const columns = [
    { title: "ID", cell: (row) => html`<span class="mono">${row.id}</span><small class="below mono clip" title=${row.path}>${row.path}</small>`, value: (row) => row.id, grow: true },
    { title: "Last heartbeat", cell: (row) => time(row.timeSinceLastHeartbeat), value: (row) => row.timeSinceLastHeartbeat },
    { title: "Slots in use", cell: (row) => html`<${Bar} share=${used(row) / Math.max(1, row.slotsNumber)} text="${used(row)} of ${row.slotsNumber}" />`, value: used },
    { title: "CPU cores", cell: (row) => whole(row.hardware?.cpuCores), value: (row) => row.hardware?.cpuCores, right: true },
    { title: "Memory", cell: (row) => bytes(row.hardware?.physicalMemory || undefined), value: (row) => row.hardware?.physicalMemory, right: true },
    { title: "Free", cell: (row) => bytes(row.hardware?.freeMemory || undefined), value: (row) => row.hardware?.freeMemory, right: true },
  ];
  return html`<${Table} caption="Task managers" columns=${columns} rows=${rows} rowKey=${(row) => row.id} detail=${(row) => html`<${Manager} id=${row.id} />`} empty="No executor is registered: they come with the first job." />`;
}

function Manager({ id }) {
  const [shown, setShown] = useState("slots");
  const found = usePolled(path`taskmanagers/${id}`);
  const columns = [
    { title: "Job", cell: (row) => html`<span class="mono">${row.jobId}</span>`, grow: true },
    { title: "CPU cores", cell: (row) => whole(row.resource?.cpuCores), right: true },
  ];
  return html`
    <div class="tabs small" role="group" aria-label="About this task manager">
      ${["slots", "log", "stdout"].map((name) => html`<button key=${name} class="tab" aria-pressed=${String(shown === name)} onClick=${() => setShown(name)}>${name}</button>`)}
    </div>
    ${shown === "slots"
      ? html`<${Fetched} of=${found}>${(facts) => html`<${Table} caption="Slots" columns=${columns} rows=${(facts.allocatedSlots || []).map((slot, index) => ({ ...slot, index }))} rowKey=${(row) => row.index} empty="No slot is in use." />`}<//>`
      : html`<${Log} key=${shown} url=${path`taskmanagers/${id}/${shown}`} name=${id} />`}
  `;
}
