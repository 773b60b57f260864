// Lists of jobs: those that run, with their throughput, and those that are over.
import { path } from "../api.js";
import { Sparkline } from "../charts.js";
import { html } from "../dom.js";
import { duration, perSecond, time } from "../format.js";
import { seriesOf } from "../model.js";
import { State, TaskCounts, isOver } from "../parts/badge.js";
import { Card } from "../parts/figure.js";
import { Fetched } from "../parts/notice.js";
import { Table } from "../parts/table.js";
import { usePolled } from "../poll.js";
import { href } from "../route.js";

const LIVE_EVERY_MS = 5000;

export function JobsPage({ completed }) {
  const jobs = usePolled("jobs/overview");
  return html`
    <h1>${completed ? "Completed Jobs" : "Running Jobs"}</h1>
    <${Fetched} of=${jobs} title="The jobs cannot be read">
      ${({ jobs: all }) => html`<${Card}><${JobsTable} completed=${completed} jobs=${all.filter((job) => isOver(job.state) === completed)} /><//>`}
    <//>
  `;
}

export function JobsTable({ jobs, completed = false }) {
  const kind = completed ? "completed" : "running";
  const link = (job) => html`<a href=${href("job", kind, job.jid, "overview")}>${job.name}</a>`;
  const columns = [
    { title: "Job Name", cell: link, value: (job) => job.name.toLowerCase(), grow: true },
    !completed && { title: "Throughput", cell: (job) => html`<${Throughput} jobId=${job.jid} />` },
    { title: "Start Time", cell: (job) => time(job["start-time"]), value: (job) => job["start-time"] },
    { title: "Duration", cell: (job) => duration(job.duration), value: (job) => job.duration, right: true },
    completed && { title: "End Time", cell: (job) => time(job["end-time"]), value: (job) => job["end-time"] },
    { title: "Tasks", cell: (job) => html`<${TaskCounts} of=${job.tasks} />` },
    { title: "Status", cell: (job) => html`<${State} of=${job.state} />`, value: (job) => job.state },
  ].filter(Boolean);
  const empty = completed ? "No job has ended yet." : html`No job is running. Start one with <code>headwater run program.py</code>, or <a href=${href("submit")}>submit one here</a>.`;
  return html`<${Table} caption="${kind} jobs" columns=${columns} rows=${jobs} rowKey=${(job) => job.jid} sortBy=${[completed ? 3 : 2, "desc"]} empty=${empty} />`;
}

function Throughput({ jobId }) {
  const { data } = usePolled(path`jobs/${jobId}/live`, LIVE_EVERY_MS);
  const values = seriesOf(data, "numRecordsInPerSecond");
  const last = values.findLast(Number.isFinite);
  return html`<span class="throughput"><${Sparkline} values=${values.slice(-60)} label="Records per second" /><span class="number">${perSecond(last)}</span></span>`;
}
