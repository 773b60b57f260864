// Upload a program and run it. Flink's page does this with jars; the paths of the requests are the same.
import { get, path, post, remove } from "../api.js";
import { Field } from "../actions.js";
import { html, useRef, useState } from "../dom.js";
import { time } from "../format.js";
import { Dialog } from "../parts/dialog.js";
import { Card } from "../parts/figure.js";
import { Fetched, Problem } from "../parts/notice.js";
import { Table } from "../parts/table.js";
import { usePolled } from "../poll.js";
import { go } from "../route.js";

export function SubmitPage() {
  const programs = usePolled("jars", 5000);
  const [chosen, setChosen] = useState(null);
  return html`
    <h1>Submit New Job</h1>
    <p class="hint">A program is a Python file, or a zip of a package with <code>__main__.py</code>. It runs in a driver process of its own, as with <code>headwater run</code>.</p>
    <${Upload} onDone=${programs.refresh} />
    <${Fetched} of=${programs} title="This server takes no submissions">
      ${({ files }) => html`<${Card} title="Uploaded programs"><${Programs} files=${files} onRun=${setChosen} onRemoved=${programs.refresh} /><//>`}
    <//>
    ${chosen && html`<${RunDialog} program=${chosen} onClose=${() => setChosen(null)} />`}
  `;
}

function Upload({ onDone }) {
  const input = useRef(null);
  const [state, setState] = useState({});
  async function send(file) {
    if (!file) return;
    const body = new FormData();
    body.append("jarfile", file);
    setState({ busy: file.name });
    try {
      await post("jars/upload", body);
      setState({ done: file.name });
      onDone();
    } catch (error) {
      setState({ error });
    }
    input.current.value = "";
  }
  const onDrop = (event) => {
    event.preventDefault();
    send(event.dataTransfer.files[0]);
  };
  return html`
    <div class="upload" onDragOver=${(event) => event.preventDefault()} onDrop=${onDrop}>
      <label class="file-button">${state.busy ? `Uploading ${state.busy} …` : "Choose a program"}<input ref=${input} type="file" accept=".py,.zip" onChange=${(event) => send(event.target.files[0])} /></label>
      <span class="dim">or drop it here</span>
      ${state.done && html`<span role="status">${state.done} is uploaded.</span>`}
      ${state.error && html`<${Problem} error=${state.error} title="The upload failed" />`}
    </div>
  `;
}

function Programs({ files, onRun, onRemoved }) {
  const [error, setError] = useState(null);
  const drop = (file) => remove(path`jars/${file.id}`).then(onRemoved, setError);
  const columns = [
    { title: "Name", cell: (file) => file.name, value: (file) => file.name, grow: true },
    { title: "Uploaded", cell: (file) => time(file.uploaded), value: (file) => file.uploaded },
    { title: "", cell: (file) => html`<span class="row-buttons"><button class="primary" onClick=${() => onRun(file)}>Run …</button><button onClick=${() => drop(file)}>Delete</button></span>` },
  ];
  return html`${error && html`<${Problem} error=${error} />`}<${Table} caption="Programs" columns=${columns} rows=${files} rowKey=${(file) => file.id} empty="Nothing was uploaded yet." />`;
}

const FIELDS = [
  { name: "args", label: "Program arguments", placeholder: "--input topic" },
  { name: "parallelism", label: "Parallelism", type: "number", min: 1, placeholder: "as configured" },
  { name: "savepoint", label: "Savepoint path", placeholder: "start with empty state" },
  { name: "allowNonRestored", label: "Allow state that no operator takes", type: "checkbox" },
];

function RunDialog({ program, onClose }) {
  const [values, setValues] = useState({});
  const [state, setState] = useState({});
  async function submit(event) {
    event.preventDefault();
    setState({ busy: true });
    try {
      const { jobid } = await post(path`jars/${program.id}/run`, {
        programArgsList: words(values.args || ""),
        parallelism: values.parallelism ? Number(values.parallelism) : null,
        savepointPath: values.savepoint || null,
        allowNonRestoredState: Boolean(values.allowNonRestored),
      });
      onClose();
      await untilKnown(jobid);
      go("job", "running", jobid, "overview");
    } catch (error) {
      setState({ error });
    }
  }
  return html`
    <${Dialog} title="Run ${program.name}" onClose=${onClose}>
      <form onSubmit=${submit}>
        ${FIELDS.map((field) => html`<${Field} key=${field.name} field=${field} value=${values[field.name] ?? ""} onChange=${(value) => setValues({ ...values, [field.name]: value })} />`)}
        ${state.error && html`<${Problem} error=${state.error} title="The program did not start" />`}
        <div class="buttons"><button type="button" onClick=${onClose}>Close</button><button class="primary" disabled=${state.busy}>${state.busy ? "Starting …" : "Submit"}</button></div>
      </form>
    <//>
  `;
}

/** The job's page answers 404 until its driver is up; a few seconds, but not for ever. */
async function untilKnown(jobId) {
  for (let tries = 0; tries < 40; tries += 1) {
    if (await get(path`jobs/${jobId}/status`).then(() => true, () => false)) return;
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
}

/** Split as a shell does, with quotes. */
const words = (text) => [...text.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(([, double, single, bare]) => double ?? single ?? bare);
