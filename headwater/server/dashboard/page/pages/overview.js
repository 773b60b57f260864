// The first page: what the cluster has, and its jobs.
import { html } from "../dom.js";
import { whole } from "../format.js";
import { isOver } from "../parts/badge.js";
import { Card, Figure, Figures } from "../parts/figure.js";
import { Fetched } from "../parts/notice.js";
import { usePolled } from "../poll.js";
import { JobsTable } from "./jobs.js";

export function OverviewPage() {
  const overview = usePolled("overview");
  const jobs = usePolled("jobs/overview");
  return html`
    <h1>Overview</h1>
    <${Fetched} of=${overview}>${(facts) => html`<${Cluster} facts=${facts} />`}<//>
    <${Fetched} of=${jobs} title="The jobs cannot be read">
      ${({ jobs: all }) => html`
        <${Card} title="Running Jobs"><${JobsTable} jobs=${all.filter((job) => !isOver(job.state))} /><//>
        <${Card} title="Completed Jobs"><${JobsTable} completed jobs=${all.filter((job) => isOver(job.state)).slice(0, 10)} /><//>
      `}
    <//>
  `;
}

const Cluster = ({ facts }) => html`
  <${Figures}>
    <${Figure} name="Available task slots" value=${whole(facts["slots-available"])} note="of ${whole(facts["slots-total"])} on ${whole(facts.taskmanagers)} task manager${facts.taskmanagers === 1 ? "" : "s"}" />
    <${Figure} name="Running" value=${whole(facts["jobs-running"])} tone="good" />
    <${Figure} name="Finished" value=${whole(facts["jobs-finished"])} />
    <${Figure} name="Canceled" value=${whole(facts["jobs-cancelled"])} />
    <${Figure} name="Failed" value=${whole(facts["jobs-failed"])} tone=${facts["jobs-failed"] ? "bad" : ""} />
  <//>
`;
