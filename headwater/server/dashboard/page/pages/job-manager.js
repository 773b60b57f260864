// The server itself: its configuration, its log, its output.
import { html } from "../dom.js";
import { Card } from "../parts/figure.js";
import { Fetched } from "../parts/notice.js";
import { TabStrip } from "../parts/tab-strip.js";
import { usePolled } from "../poll.js";
import { href } from "../route.js";
import { Settings } from "../tabs/configuration.js";
import { Log } from "../tabs/logs.js";

const TABS = { config: "Configuration", logs: "Logs", stdout: "Stdout" };

export function JobManagerPage({ tab }) {
  return html`
    <h1>Job Manager</h1>
    <${TabStrip} label="About the job manager" chosen=${tab} tabs=${Object.entries(TABS).map(([name, title]) => ({ name, title, href: href("job-manager", name) }))} />
    <div role="tabpanel" class="tab-panel" aria-label=${TABS[tab]}>
      ${tab === "logs" ? html`<${Log} key="log" url="jobmanager/log" name="jobmanager" />` : tab === "stdout" ? html`<${Log} key="stdout" url="jobmanager/stdout" name="jobmanager-stdout" />` : html`<${Configuration} />`}
    </div>
  `;
}

function Configuration() {
  const found = usePolled("jobmanager/config", 0);
  return html`<${Card}><${Fetched} of=${found}>${(rows) => html`<${Settings} rows=${rows} />`}<//><//>`;
}
