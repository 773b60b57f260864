// The end of the job's log, as it grows.
import { get, path } from "../api.js";
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../dom.js";
import { Card } from "../parts/figure.js";
import { Empty, Problem } from "../parts/notice.js";

const SHOWN_LINES = 2000;
const SHOWN_BYTES = 400_000;

export const LogsTab = ({ job, over }) => html`<${Log} url=${path`jobs/${job.jid}/log`} name=${job.name} isGrowing=${!over} />`;

/** A log of the server: its last lines, with a filter, and the end kept in view unless one scrolls up. */
export function Log({ url, name, isGrowing = true }) {
  const [text, setText] = useState(null);
  const [error, setError] = useState(null);
  const [wanted, setWanted] = useState("");
  const [follow, setFollow] = useState(true);
  const pane = useRef(null);

  useEffect(() => {
    let gone = false;
    let timer = 0;
    const read = async () => {
      try {
        const found = await get(`${url}?tail=${SHOWN_BYTES}`);
        if (!gone) [setText(String(found)), setError(null)];
      } catch (failure) {
        if (!gone) setError(failure);
      }
      if (isGrowing && !gone) timer = setTimeout(read, 3000);
    };
    read();
    return () => {
      gone = true;
      clearTimeout(timer);
    };
  }, [url, isGrowing]);

  const lines = useMemo(() => (text || "").split("\n").filter((line) => line.toLowerCase().includes(wanted.toLowerCase())), [text, wanted]);
  const isCut = useMemo(() => new TextEncoder().encode(text || "").length >= SHOWN_BYTES, [text]);
  useLayoutEffect(() => {
    if (follow && pane.current) pane.current.scrollTop = pane.current.scrollHeight;
  }, [lines, follow]);

  if (text === null) return error ? (error.status === 404 ? html`<${Empty} title="There is no log">${error.message}<//>` : html`<${Problem} error=${error} title="The log cannot be read" />`) : null;
  const save = async () => {
    const whole = String(await get(url));
    const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(new Blob([whole])), download: `${name}.log` });
    link.click();
    URL.revokeObjectURL(link.href);
  };
  return html`
    <${Card}>
      <div class="log-tools">
        <label class="filter">Filter<input type="search" value=${wanted} onInput=${(event) => setWanted(event.target.value)} /></label>
        <label class="check"><input type="checkbox" checked=${follow} onChange=${(event) => setFollow(event.target.checked)} />Follow the end</label>
        <span class="dim">${lines.length > SHOWN_LINES || isCut ? `last ${Math.min(SHOWN_LINES, lines.length)} lines` : `${lines.length} lines`}${isCut && wanted ? `, of the last ${SHOWN_BYTES / 1000} kB` : ""}</span>
        <button onClick=${save}>Download</button>
      </div>
      <pre class="log" ref=${pane} tabindex="0" aria-label="Log">${lines.slice(-SHOWN_LINES).map((line, index) => html`<span key=${index} class=${level(line)}>${line}</span>`)}</pre>
    <//>
  `;
}

const level = (line) => (/\b(ERROR|CRITICAL|Traceback|Exception)\b/.test(line) ? "log-error" : /\bWARN(ING)?\b/.test(line) ? "log-warn" : "");
