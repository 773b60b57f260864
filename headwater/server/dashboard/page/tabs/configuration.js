// What the job was started with.
import { path } from "../api.js";
import { html, useState } from "../dom.js";
import { Card, Facts } from "../parts/figure.js";
import { Fetched } from "../parts/notice.js";
import { Table } from "../parts/table.js";
import { usePolled } from "../poll.js";

export function ConfigurationTab({ job }) {
  const found = usePolled(path`jobs/${job.jid}/config`, 0);
  return html`<${Fetched} of=${found} title="The configuration cannot be read">
    ${({ "execution-config": config }) => html`
      <${Card} title="Execution">
        <${Facts} rows=${[["Max. number of execution retries", config["restart-strategy"]], ["Job parallelism", config["job-parallelism"]], ["Object reuse mode", String(config["object-reuse-mode"])], ["Execution mode", config["execution-mode"]]]} />
      <//>
      <${Card} title="User configuration"><${Settings} rows=${Object.entries(config["user-config"] || {}).map(([key, value]) => ({ key, value }))} /><//>
    `}
  <//>`;
}

/** `rows`: `{key, value}`, with a filter above them. */
export function Settings({ rows, empty = "Nothing was configured: all settings have their defaults." }) {
  const [wanted, setWanted] = useState("");
  const shown = rows.filter(({ key, value }) => `${key} ${value}`.toLowerCase().includes(wanted.toLowerCase()));
  const columns = [
    { title: "Key", cell: (row) => html`<code>${row.key}</code>`, value: (row) => row.key },
    { title: "Value", cell: (row) => html`<span class="mono wrap">${String(row.value)}</span>`, grow: true },
  ];
  return html`
    ${rows.length > 8 && html`<label class="filter">Filter<input type="search" value=${wanted} onInput=${(event) => setWanted(event.target.value)} /></label>`}
    <${Table} caption="Settings" columns=${columns} rows=${shown} rowKey=${(row) => row.key} sortBy=${[0, "asc"]} empty=${rows.length ? "No setting has this name." : empty} />
  `;
}
