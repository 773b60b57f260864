// What the job's own diagnosis found: a cause, what it means, and what to do.
import { html } from "../dom.js";

export function Findings({ findings = [], title = "Found" }) {
  if (!findings.length) return null;
  return html`<section class="findings" aria-label=${title}>${findings.map((finding, index) => html`<${Finding} key=${index} finding=${finding} />`)}</section>`;
}

export const Finding = ({ finding }) => html`
  <article class="finding">
    <span class="finding-sign" aria-hidden="true">!</span>
    <div>
      <p><strong>${words(finding.cause)}</strong>${finding.operator ? html` at <b>${finding.operator}</b>` : null}${finding.subtask !== undefined && finding.subtask !== null ? ` (subtask ${finding.subtask})` : ""}: ${finding.text}</p>
      ${finding.cure && html`<p class="cure">${finding.cure}</p>`}
    </div>
  </article>
`;

/** "source-idle" → "Source idle". */
const words = (cause = "finding") => {
  const text = String(cause).replaceAll(/[-_]/g, " ").toLowerCase();
  return text[0].toUpperCase() + text.slice(1);
};
