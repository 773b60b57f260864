// The buttons of a job. Each asks before it acts, waits for the result, and says clearly what came of it.
import { completed, patch, path, post } from "./api.js";
import { html, useEffect, useRef, useState } from "./dom.js";
import { isOver } from "./parts/badge.js";
import { Dialog } from "./parts/dialog.js";
import { Problem } from "./parts/notice.js";

const savepointOf = (jobId) => (trigger) => path`jobs/${jobId}/savepoints/${trigger}`;

/** `run(job, values, waiting)` does it and returns a sentence about the result. */
const ACTIONS = {
  savepoint: {
    button: "Savepoint",
    title: "Take a savepoint",
    explain: "The job goes on. A savepoint is a complete copy of its state: a new version of the job can start from it.",
    fields: [{ name: "directory", label: "Directory", placeholder: "as configured" }],
    submit: "Take savepoint",
    busy: "Taking the savepoint …",
    async run(job, { directory }, waiting) {
      const started = await post(path`jobs/${job.jid}/savepoints`, { "target-directory": directory || null, "cancel-job": false });
      const { location } = await completed(started, savepointOf(job.jid), waiting);
      return { text: "Savepoint completed.", path: location };
    },
  },
  stop: {
    button: "Stop",
    title: "Stop with a savepoint",
    explain: "The job takes a savepoint and ends. Nothing is lost: start it again from the savepoint.",
    fields: [
      { name: "directory", label: "Directory", placeholder: "as configured" },
      { name: "drain", label: "Drain: first end event time, so that all windows close", type: "checkbox" },
    ],
    submit: "Stop the job",
    busy: "Taking the savepoint and stopping …",
    async run(job, { directory, drain }, waiting) {
      const started = await post(path`jobs/${job.jid}/stop`, { targetDirectory: directory || null, drain: Boolean(drain) });
      const { location } = await completed(started, savepointOf(job.jid), waiting);
      return { text: "The job is stopped. Savepoint completed.", path: location };
    },
  },
  rescale: {
    button: "Rescale",
    title: "Change the parallelism",
    explain: "The job completes a checkpoint, and goes on from it with the new number of partitions. Its process stays.",
    fields: [{ name: "parallelism", label: "Parallelism", type: "number", min: 1, required: true, initial: (job) => Math.max(...job.vertices.map((vertex) => vertex.parallelism)) }],
    submit: "Rescale",
    busy: "Rescaling …",
    async run(job, { parallelism }, waiting) {
      const started = await patch(path`jobs/${job.jid}/rescaling?parallelism=${parallelism}`);
      await completed(started, (trigger) => path`jobs/${job.jid}/rescaling/${trigger}`, waiting);
      return { text: `The job runs with parallelism ${parallelism}.` };
    },
  },
  cancel: {
    button: "Cancel",
    danger: true,
    title: "Cancel the job",
    explain: "The job ends at once, without a savepoint. Output since its last checkpoint is not committed.",
    fields: [],
    submit: "Cancel the job",
    busy: "Cancelling …",
    async run(job) {
      await patch(path`jobs/${job.jid}?mode=cancel`);
      return { text: "The job is being cancelled." };
    },
  },
};

export function JobActions({ job, refresh }) {
  const [open, setOpen] = useState(null);
  const off = isOver(job.state);
  return html`
    <div class="actions" role="group" aria-label="Operate the job">
      ${Object.entries(ACTIONS).map(([name, action]) => html`<button key=${name} class=${action.danger ? "danger" : ""} disabled=${off} onClick=${() => setOpen(name)}>${action.button}</button>`)}
    </div>
    ${open && html`<${ActionDialog} key=${open} action=${ACTIONS[open]} job=${job} onClose=${() => { setOpen(null); refresh(); }} />`}
  `;
}

function ActionDialog({ action, job, onClose }) {
  const [values, setValues] = useState(() => Object.fromEntries(action.fields.map((field) => [field.name, field.initial ? field.initial(job) : ""])));
  const [state, setState] = useState({ phase: "asking" });
  const closed = useRef(false);
  useEffect(() => () => (closed.current = true), []);

  async function submit(event) {
    event.preventDefault();
    setState({ phase: "busy" });
    try {
      const result = await action.run(job, values, { isOver: () => closed.current });
      setState({ phase: "done", result });
    } catch (error) {
      if (error.name !== "AbortError") setState({ phase: "failed", error });
    }
  }
  return html`
    <${Dialog} title=${action.title} onClose=${onClose}>
      ${state.phase === "done"
        ? html`<${Result} result=${state.result} onClose=${onClose} />`
        : html`
          <form onSubmit=${submit}>
            <p>${action.explain}</p>
            <p class="dim">Job: <b>${job.name}</b></p>
            ${action.fields.map((field) => html`<${Field} key=${field.name} field=${field} value=${values[field.name]} onChange=${(value) => setValues({ ...values, [field.name]: value })} />`)}
            ${state.phase === "failed" && html`<${Problem} error=${state.error} />`}
            <div class="buttons">
              <button type="button" onClick=${onClose}>Close</button>
              <button class=${action.danger ? "danger filled" : "primary"} disabled=${state.phase === "busy"} autofocus=${!action.fields.length}>${state.phase === "busy" ? action.busy : action.submit}</button>
            </div>
          </form>
        `}
    <//>
  `;
}

const Result = ({ result, onClose }) => html`
  <div role="status" class="result">
    <p><strong>${result.text}</strong></p>
    ${result.path && html`<pre class="path">${result.path}</pre>`}
    <div class="buttons">
      ${result.path && html`<button onClick=${() => navigator.clipboard?.writeText(result.path)}>Copy the path</button>`}
      <button class="primary" autofocus onClick=${onClose}>Done</button>
    </div>
  </div>
`;

export function Field({ field, value, onChange }) {
  if (field.type === "checkbox") return html`<label class="check"><input type="checkbox" checked=${Boolean(value)} onChange=${(event) => onChange(event.target.checked)} />${field.label}</label>`;
  return html`<label>${field.label}<input type=${field.type || "text"} min=${field.min} required=${field.required} placeholder=${field.placeholder} value=${value} onInput=${(event) => onChange(event.target.value)} /></label>`;
}
