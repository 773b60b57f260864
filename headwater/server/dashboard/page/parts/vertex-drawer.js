// What opens beside the graph for one vertex: its subtasks, all its metrics, its accumulators.
import { path } from "../api.js";
import { html, useEffect, useState } from "../dom.js";
import { bytes, count, duration, percent, watermark, whole } from "../format.js";
import { figuresOf } from "../model.js";
import { usePolled } from "../poll.js";
import { State } from "./badge.js";
import { Bar, Facts } from "./figure.js";
import { Fetched } from "./notice.js";
import { Table } from "./table.js";

const PANES = { subtasks: "SubTasks", metrics: "Metrics", accumulators: "Accumulators" };

export function VertexDrawer({ job, vertex, live, onClose }) {
  const [pane, setPane] = useState("subtasks");
  useEffect(() => {
    const onKey = (event) => event.key === "Escape" && !document.querySelector("dialog[open]") && onClose();
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  const Pane = { subtasks: Subtasks, metrics: Metrics, accumulators: Accumulators }[pane];
  return html`
    <section class="drawer" aria-label="Vertex ${vertex.name}">
      <header><h2>${vertex.name}</h2><button class="plain close" aria-label="Close the vertex" onClick=${onClose}>✕</button></header>
      <${Facts} rows=${[["Parallelism", vertex.parallelism], ["Busy", percent(vertex.busy)], ["Back-pressured", percent(vertex.backPressured)], ["Watermark", watermark(vertex.watermark)], ["Watermark lag", vertex.lag === undefined ? "" : duration(vertex.lag)], ["State", vertex.stateEntries ? `${whole(vertex.stateEntries)} entries` : ""]]} />
      <div class="tabs small" role="group" aria-label="About this vertex">
        ${Object.entries(PANES).map(([name, title]) => html`<button key=${name} class="tab" aria-pressed=${String(name === pane)} onClick=${() => setPane(name)}>${title}</button>`)}
      </div>
      <div class="drawer-body"><${Pane} job=${job} vertex=${vertex} live=${live} /></div>
    </section>
  `;
}

function Subtasks({ job, vertex, live }) {
  const detail = usePolled(path`jobs/${job.jid}/vertices/${vertex.id}`);
  const figures = figuresOf(live, vertex.id).subtasks;
  const of = (row, name) => figures[row.subtask]?.[name];
  const columns = [
    { title: "#", cell: (row) => row.subtask, value: (row) => row.subtask, right: true },
    { title: "In", cell: (row) => count(row.metrics["read-records"]), value: (row) => row.metrics["read-records"], right: true },
    { title: "Out", cell: (row) => count(row.metrics["write-records"]), value: (row) => row.metrics["write-records"], right: true },
    { title: "Bytes in", cell: (row) => bytes(row.metrics["read-bytes"]), value: (row) => row.metrics["read-bytes"], right: true },
    { title: "Busy", cell: (row) => html`<${Bar} share=${of(row, "busyTimeMsPerSecond") / 1000} text=${percent(of(row, "busyTimeMsPerSecond") / 1000)} tone="busy" />`, value: (row) => of(row, "busyTimeMsPerSecond") },
    { title: "Host", cell: (row) => html`<span title="attempt ${row.attempt}">${row.endpoint}</span>`, value: (row) => row.endpoint },
    { title: "Status", cell: (row) => html`<${State} of=${row.status} />` },
  ];
  return html`<${Fetched} of=${detail}>${({ subtasks }) => html`<${Table} caption="Subtasks" columns=${columns} rows=${subtasks} rowKey=${(row) => row.subtask} />`}<//>`;
}

function Metrics({ vertex, live }) {
  const [wanted, setWanted] = useState("");
  const { aggregate, subtasks } = figuresOf(live, vertex.id);
  const names = [...new Set([...Object.keys(aggregate), ...subtasks.flatMap(Object.keys)])].sort();
  const shown = names.filter((name) => name.toLowerCase().includes(wanted.toLowerCase()));
  const columns = [
    { title: "Metric", cell: (name) => html`<code>${name}</code>`, value: (name) => name, grow: true },
    ...subtasks.map((subtask, index) => ({ title: `#${index}`, cell: (name) => metric(name, subtask[name]), right: true })),
  ];
  return html`
    <label class="filter">Filter<input type="search" value=${wanted} onInput=${(event) => setWanted(event.target.value)} /></label>
    <${Table} caption="Metrics" columns=${columns} rows=${shown} rowKey=${(name) => name} empty="No metric has this name." />
  `;
}

const metric = (name, value) => (/watermark$/i.test(name) ? watermark(value) : /bytes|size$/i.test(name) && !/PerSecond/.test(name) ? bytes(value) : whole(value));

function Accumulators({ job, vertex }) {
  const found = usePolled(path`jobs/${job.jid}/vertices/${vertex.id}/accumulators`);
  const columns = [
    { title: "Name", cell: (row) => row.name, value: (row) => row.name, grow: true },
    { title: "Type", cell: (row) => row.type },
    { title: "Value", cell: (row) => row.value, right: true },
  ];
  return html`<${Fetched} of=${found}>${(data) => html`<${Table} caption="Accumulators" columns=${columns} rows=${data["user-accumulators"]} rowKey=${(row) => row.name} empty="The functions of this vertex register no accumulators." />`}<//>`;
}
