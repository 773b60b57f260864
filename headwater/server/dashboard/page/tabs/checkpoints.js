// Checkpoints as on Flink's page: overview, history with figures per partition, summary, configuration.
import { path, post } from "../api.js";
import { html, useState } from "../dom.js";
import { bytes, duration, time, whole } from "../format.js";
import { State } from "../parts/badge.js";
import { Card, Facts, Figure, Figures } from "../parts/figure.js";
import { Fetched, Problem } from "../parts/notice.js";
import { Table } from "../parts/table.js";
import { TabStrip } from "../parts/tab-strip.js";
import { usePolled } from "../poll.js";
import { href } from "../route.js";

const PANES = { overview: "Overview", history: "History", summary: "Summary", configuration: "Configuration" };

export function CheckpointsTab({ job, over, rest = "overview" }) {
  const found = usePolled(path`jobs/${job.jid}/checkpoints`);
  const kind = over ? "completed" : "running";
  const tabs = Object.entries(PANES).map(([name, title]) => ({ name, title, href: href("job", kind, job.jid, "checkpoints", name) }));
  return html`
    <div class="tab-row"><${TabStrip} label="About the checkpoints" tabs=${tabs} chosen=${rest} />${!over && html`<${TriggerButton} jobId=${job.jid} refresh=${found.refresh} />`}</div>
    ${rest === "configuration"
      ? html`<${Configuration} jobId=${job.jid} />`
      : html`<${Fetched} of=${found} title="The checkpoints cannot be read">
          ${(data) => (rest === "history" ? html`<${History} job=${job} history=${data.history} />` : rest === "summary" ? html`<${Summary} summary=${data.summary} />` : html`<${Overview} data=${data} />`)}
        <//>`}
  `;
}

function TriggerButton({ jobId, refresh }) {
  const [state, setState] = useState({});
  async function trigger() {
    setState({ busy: true });
    try {
      await post(path`jobs/${jobId}/checkpoints`, {});
      setState({});
      refresh();
    } catch (error) {
      setState({ error });
    }
  }
  return html`<div class="trigger"><button disabled=${state.busy} onClick=${trigger}>Take a checkpoint now</button>${state.error && html`<${Problem} error=${state.error} />`}</div>`;
}

function Overview({ data: { counts, latest } }) {
  return html`
    <${Figures}>
      <${Figure} name="Completed" value=${whole(counts.completed)} tone="good" />
      <${Figure} name="In progress" value=${whole(counts.in_progress)} />
      <${Figure} name="Failed" value=${whole(counts.failed)} tone=${counts.failed ? "bad" : ""} />
      <${Figure} name="Restored" value=${whole(counts.restored)} />
      <${Figure} name="Triggered" value=${whole(counts.total)} />
    <//>
    <div class="columns">
      <${Latest} title="Latest completed checkpoint" checkpoint=${latest.completed} none="No checkpoint has completed yet." />
      <${Latest} title="Latest failed checkpoint" checkpoint=${latest.failed} none="None has failed." />
      <${Latest} title="Latest savepoint" checkpoint=${latest.savepoint} none="No savepoint was taken." />
      <${Latest} title="Latest restore" checkpoint=${latest.restored} none="The job was not restored from a checkpoint." />
    </div>
  `;
}

const Latest = ({ title, checkpoint, none }) => html`
  <${Card} title=${title}>
    ${checkpoint
      ? html`<${Facts} rows=${[
          ["ID", checkpoint.id],
          ["Time", time(checkpoint.latest_ack_timestamp ?? checkpoint.restore_timestamp ?? checkpoint.failure_timestamp ?? checkpoint.trigger_timestamp)],
          ["Duration", checkpoint.end_to_end_duration === undefined ? "" : duration(checkpoint.end_to_end_duration)],
          ["Checkpointed size", checkpoint.checkpointed_size === undefined ? "" : bytes(checkpoint.checkpointed_size)],
          ["Full size", checkpoint.state_size === undefined ? "" : bytes(checkpoint.state_size)],
          ["Path", checkpoint.external_path],
          ["Failure", checkpoint.failure_message],
        ]} />`
      : html`<p class="card-body dim">${none}</p>`}
  <//>
`;

function History({ job, history }) {
  const columns = [
    { title: "ID", cell: (each) => each.id, value: (each) => each.id, right: true },
    { title: "Status", cell: (each) => html`<${State} of=${each.status} />`, value: (each) => each.status },
    { title: "Type", cell: (each) => (each.is_savepoint ? "savepoint" : "checkpoint"), value: (each) => String(each.is_savepoint) },
    { title: "Acknowledged", cell: (each) => `${each.num_acknowledged_subtasks}/${each.num_subtasks}`, right: true },
    { title: "Trigger time", cell: (each) => time(each.trigger_timestamp), value: (each) => each.trigger_timestamp },
    { title: "Latest ack", cell: (each) => time(each.latest_ack_timestamp), value: (each) => each.latest_ack_timestamp },
    { title: "Duration", cell: (each) => duration(each.end_to_end_duration), value: (each) => each.end_to_end_duration, right: true },
    { title: "Checkpointed", cell: (each) => bytes(each.checkpointed_size), value: (each) => each.checkpointed_size, right: true },
    { title: "Full size", cell: (each) => bytes(each.state_size), value: (each) => each.state_size, right: true },
  ];
  return html`<${Card}><${Table} caption="Checkpoints" columns=${columns} rows=${history} rowKey=${(each) => each.id} detail=${(each) => html`<${Detail} job=${job} checkpoint=${each} />`} empty="No checkpoint was triggered yet." /><//>`;
}

/** One checkpoint: which vertex wrote how much, and below it, which partition. */
function Detail({ job, checkpoint }) {
  const found = usePolled(path`jobs/${job.jid}/checkpoints/details/${checkpoint.id}`, 0);
  const names = Object.fromEntries(job.vertices.map((vertex) => [vertex.id, vertex.name]));
  const columns = [
    { title: "Vertex", cell: (row) => names[row.vertex] || row.vertex, value: (row) => names[row.vertex], grow: true },
    { title: "Acknowledged", cell: (row) => `${row.num_acknowledged_subtasks}/${row.num_subtasks}`, right: true },
    { title: "Latest ack", cell: (row) => time(row.latest_ack_timestamp, { withMs: true }) },
    { title: "Duration", cell: (row) => duration(row.end_to_end_duration), value: (row) => row.end_to_end_duration, right: true },
    { title: "Checkpointed", cell: (row) => bytes(row.checkpointed_size), value: (row) => row.checkpointed_size, right: true },
    { title: "Full size", cell: (row) => bytes(row.state_size), value: (row) => row.state_size, right: true },
  ];
  return html`<${Fetched} of=${found} title="This checkpoint cannot be read">
    ${(data) => html`
      <${Facts} rows=${[["Path", data.external_path], ["Failure", data.failure_message], ["Discarded", data.discarded ? "yes: newer ones replaced it" : ""]]} />
      <${Table} caption="Vertices of checkpoint ${data.id}" columns=${columns} rows=${Object.entries(data.tasks || {}).map(([vertex, figures]) => ({ vertex, ...figures }))} rowKey=${(row) => row.vertex} detail=${(row) => html`<${Subtasks} job=${job} id=${data.id} vertex=${row.vertex} />`} />
    `}
  <//>`;
}

function Subtasks({ job, id, vertex }) {
  const found = usePolled(path`jobs/${job.jid}/checkpoints/details/${id}/subtasks/${vertex}`, 0);
  const columns = [
    { title: "Partition", cell: (row) => row.index, value: (row) => row.index, right: true },
    { title: "Status", cell: (row) => html`<${State} of=${row.status} />` },
    { title: "Ack", cell: (row) => time(row.ack_timestamp, { withMs: true }) },
    { title: "Duration", cell: (row) => duration(row.end_to_end_duration), value: (row) => row.end_to_end_duration, right: true },
    { title: "Sync", cell: (row) => duration(row.checkpoint?.sync), right: true },
    { title: "Async", cell: (row) => duration(row.checkpoint?.async), right: true },
    { title: "Checkpointed", cell: (row) => bytes(row.checkpointed_size), value: (row) => row.checkpointed_size, right: true },
    { title: "Full size", cell: (row) => bytes(row.state_size), value: (row) => row.state_size, right: true },
  ];
  return html`<${Fetched} of=${found}>${({ subtasks }) => html`<${Table} caption="Partitions" columns=${columns} rows=${subtasks} rowKey=${(row) => row.index} />`}<//>`;
}

const SUMMARY = [["End to end duration", "end_to_end_duration", duration], ["Checkpointed data size", "checkpointed_size", bytes], ["Full checkpoint data size", "state_size", bytes], ["Processed in-flight data", "processed_data", bytes], ["Persisted in-flight data", "persisted_data", bytes]];
const QUANTILES = [["Minimum", "min"], ["Average", "avg"], ["p50", "p50"], ["p90", "p90"], ["p95", "p95"], ["p99", "p99"], ["Maximum", "max"]];

function Summary({ summary }) {
  const rows = SUMMARY.filter(([, name]) => summary[name]);
  const columns = [
    { title: "", cell: ([title]) => title, grow: true },
    ...QUANTILES.map(([title, quantile]) => ({ title, cell: ([, name, format]) => format(summary[name][quantile]), right: true })),
  ];
  return html`<${Card}><${Table} caption="Summary of completed checkpoints" columns=${columns} rows=${rows} rowKey=${([title]) => title} empty="No checkpoint has completed yet." /><//>`;
}

function Configuration({ jobId }) {
  const found = usePolled(path`jobs/${jobId}/checkpoints/config`, 0);
  return html`<${Card}><${Fetched} of=${found}>
    ${(config) => html`<${Facts} rows=${[
      ["Checkpointing mode", String(config.mode).replaceAll("_", " ")],
      ["Interval", config.interval > 1e15 ? "off" : duration(config.interval)],
      ["Timeout", duration(config.timeout)],
      ["Minimum pause between checkpoints", duration(config.min_pause)],
      ["Maximum concurrent checkpoints", whole(config.max_concurrent)],
      ["Tolerable failed checkpoints", whole(config.tolerable_failed_checkpoints)],
      ["State backend", config.state_backend],
      ["Checkpoint storage", config.checkpoint_storage],
      ["Kept when the job is cancelled", config.externalization?.enabled ? (config.externalization.delete_on_cancellation ? "no" : "yes") : "no"],
      ["Unaligned checkpoints", config.unaligned_checkpoints ? "on" : "off"],
    ]} />`}
  <//><//>`;
}
