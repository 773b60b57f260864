// One job: its header with the buttons, and its tabs.
import { path } from "../api.js";
import { JobActions } from "../actions.js";
import { html, useEffect } from "../dom.js";
import { duration, time } from "../format.js";
import { State, TaskCounts, isOver } from "../parts/badge.js";
import { Empty, Fetched } from "../parts/notice.js";
import { TabStrip } from "../parts/tab-strip.js";
import { usePolled } from "../poll.js";
import { href } from "../route.js";
import { CheckpointsTab } from "../tabs/checkpoints.js";
import { ConfigurationTab } from "../tabs/configuration.js";
import { DataSkewTab } from "../tabs/data-skew.js";
import { ExceptionsTab } from "../tabs/exceptions.js";
import { FlameGraphTab } from "../tabs/flame-graph.js";
import { LogsTab } from "../tabs/logs.js";
import { OverviewTab } from "../tabs/overview.js";
import { StateTab } from "../tabs/state.js";
import { TimeLineTab } from "../tabs/timeline.js";
import { WatermarksTab } from "../tabs/watermarks.js";

const TABS = [
  ["overview", "Overview", OverviewTab],
  ["exceptions", "Exceptions", ExceptionsTab],
  ["timeline", "TimeLine", TimeLineTab],
  ["checkpoints", "Checkpoints", CheckpointsTab],
  ["dataskew", "Data Skew", DataSkewTab],
  ["watermarks", "Watermarks", WatermarksTab],
  ["flamegraph", "FlameGraph", FlameGraphTab],
  ["state", "State", StateTab],
  ["configuration", "Configuration", ConfigurationTab],
  ["logs", "Logs", LogsTab],
];

export function JobPage({ jobId, tab, rest }) {
  const job = usePolled(path`jobs/${jobId}`);
  if (job.error?.status === 404) return html`<${Forgotten} jobId=${jobId} />`;
  return html`<${Fetched} of=${job} title="The job cannot be read">
    ${(facts) => html`<${Job} job=${facts} tab=${tab} rest=${rest} refresh=${job.refresh} />`}
  <//>`;
}

const Forgotten = ({ jobId }) => html`
  <${Empty} title="The server does not know job ${jobId}">
    It ended and was not kept, or it belongs to another server. <a href=${href("job", "running")}>Running jobs</a> · <a href=${href("job", "completed")}>Completed jobs</a>
  <//>
`;

function Job({ job, tab, rest, refresh }) {
  const over = isOver(job.state);
  const live = usePolled(path`jobs/${job.jid}/live`, over ? 0 : undefined); // of a job that is over: its last figures
  const kind = over ? "completed" : "running";
  const [, , Tab] = TABS.find(([name]) => name === tab) || TABS[0];
  useEffect(() => {
    document.title = `${job.name} · headwater`;
    return () => (document.title = "headwater");
  }, [job.name]);
  return html`
    <header class="job-header">
      <div class="job-title">
        <h1>${job.name}</h1>
        <${State} of=${job.state} />
        <${JobActions} job=${job} refresh=${refresh} />
      </div>
      <dl class="job-facts">
        <div><dt>Job ID</dt><dd class="mono">${job.jid}</dd></div>
        <div><dt>Start</dt><dd>${time(job["start-time"])}</dd></div>
        ${over && html`<div><dt>End</dt><dd>${time(job["end-time"])}</dd></div>`}
        <div><dt>Duration</dt><dd>${duration(job.duration)}</dd></div>
        <div><dt>Tasks</dt><dd><${TaskCounts} of=${job["status-counts"]} /></dd></div>
      </dl>
    </header>
    ${over && html`<p class="banner" role="status">This job is over (${String(job.state).toLowerCase()}). Live figures ended with it; what the server kept is below.</p>`}
    <${TabStrip} label="About this job" chosen=${tab} tabs=${TABS.map(([name, title]) => ({ name, title, href: href("job", kind, job.jid, name) }))} />
    <div role="tabpanel" class="tab-panel" aria-label=${tab}><${Tab} job=${job} live=${live.data} over=${over} rest=${rest} /></div>
  `;
}
