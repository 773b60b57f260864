// What went wrong: the root cause first, then the history.
import { path } from "../api.js";
import { html } from "../dom.js";
import { time } from "../format.js";
import { Card, Facts } from "../parts/figure.js";
import { Empty, Fetched } from "../parts/notice.js";
import { usePolled } from "../poll.js";

export function ExceptionsTab({ job }) {
  const found = usePolled(path`jobs/${job.jid}/exceptions`);
  return html`<${Fetched} of=${found} title="The exceptions cannot be read">
    ${({ exceptionHistory }) => {
      const { entries, truncated } = exceptionHistory;
      if (!entries.length) return html`<${Empty} title="No exceptions">Nothing has failed since the job started.<//>`;
      const [latest, ...older] = entries;
      return html`
        <${Card} title="Root exception"><${Entry} entry=${latest} open /><//>
        ${older.length > 0 && html`<${Card} title="Exception history">${older.map((entry) => html`<${Entry} key=${entry.timestamp} entry=${entry} />`)}<//>`}
        ${truncated && html`<p class="dim">Older exceptions are not kept.</p>`}
      `;
    }}
  <//>`;
}

function Entry({ entry, open = false }) {
  return html`
    <details class="exception" open=${open}>
      <summary><time>${time(entry.timestamp, { withMs: true })}</time> <strong>${entry.exceptionName.split(".").at(-1)}</strong> <span class="clip">${firstLine(entry.stacktrace)}</span></summary>
      <${Facts} rows=${[["Task", entry.taskName], ["Host", entry.endpoint || entry.location], ["Task manager", entry.taskManagerId]]} />
      <pre class="trace" tabindex="0">${entry.stacktrace}</pre>
      ${(entry.concurrentExceptions || []).map((each, index) => html`<${Entry} key=${index} entry=${each} />`)}
    </details>
  `;
}

/** The message without the exception's name, which stands before it already. */
const firstLine = (trace = "") => {
  const lines = trace.trim().split("\n");
  const line = lines[0].startsWith("Traceback") ? lines.at(-1) : lines[0];
  return line.replace(/^[\w.$]+:\s*/, "");
};
