// "Why is there no output?": asks the job itself, and shows its answers, the most likely first.
import { get, path } from "../api.js";
import { html, useEffect, useState } from "../dom.js";
import { seriesOf } from "../model.js";
import { Finding } from "./findings.js";
import { Loading, Problem } from "./notice.js";

const SILENT_POINTS = 5;

/** True if the job has been reading for a while and gave nothing out. */
export function isSilent(live) {
  const out = seriesOf(live, "numRecordsOutPerSecond").slice(-SILENT_POINTS);
  return out.length === SILENT_POINTS && out.every((value) => value === 0);
}

export function WhyPanel({ jobId, live }) {
  const silent = isSilent(live);
  const [asked, setAsked] = useState(false);
  const [answer, setAnswer] = useState(null);
  const open = asked || silent;

  useEffect(() => {
    if (!open) return undefined;
    let gone = false;
    const ask = () => get(path`jobs/${jobId}/why`).then((found) => !gone && setAnswer({ causes: found.causes || found }), (error) => !gone && setAnswer({ error }));
    ask();
    const timer = setInterval(ask, 5000);
    return () => {
      gone = true;
      clearInterval(timer);
    };
  }, [open, jobId]);

  if (!open) return html`<p class="why-question"><button onClick=${() => setAsked(true)}>Why is there no output?</button></p>`;
  return html`
    <section class="card why" aria-label="Why is there no output?">
      <header>
        <h2>Why is there no output?</h2>
        ${!silent && html`<button class="plain close" aria-label="Close" onClick=${() => setAsked(false)}>✕</button>`}
      </header>
      <div class="card-body" aria-live="polite">
        ${!answer ? html`<${Loading}>Asking the job …<//>` : answer.error ? html`<${Problem} error=${answer.error} title="The job did not say" />` : html`<${Causes} causes=${answer.causes} />`}
      </div>
    </section>
  `;
}

function Causes({ causes }) {
  if (!causes.length) return html`<p class="all-well">The job finds nothing that holds output back: records go in, and results come out.</p>`;
  return html`<div class="findings">${causes.map((cause, index) => html`<${Finding} key=${index} finding=${cause} />`)}</div>`;
}
