// The shell: navigation, theme, what the server is like, and the page that the address names.
import { get } from "./api.js";
import { html, render, useEffect, useState } from "./dom.js";
import { JobPage } from "./pages/job.js";
import { JobsPage } from "./pages/jobs.js";
import { JobManagerPage } from "./pages/job-manager.js";
import { OverviewPage } from "./pages/overview.js";
import { SubmitPage } from "./pages/submit.js";
import { TaskManagersPage } from "./pages/task-managers.js";
import { ConnectionBanner, TokenDialog } from "./parts/connection.js";
import { ThemeSwitch } from "./parts/theme-switch.js";
import { href, useRoute } from "./route.js";

const NAVIGATION = [
  { title: "Overview", to: ["overview"] },
  { title: "Running Jobs", to: ["job", "running"] },
  { title: "Completed Jobs", to: ["job", "completed"] },
  { title: "Task Managers", to: ["task-manager"] },
  { title: "Job Manager", to: ["job-manager"] },
  { title: "Submit New Job", to: ["submit"], feature: "web-submit" },
];

function App() {
  const { names } = useRoute();
  const features = useFeatures();
  useEffect(() => scrollTo(0, 0), [names.slice(0, 3).join("/")]);
  return html`
    <a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); document.getElementById("main").focus(); }}>Skip to the content</a>
    <aside><div class="side">
      <a class="brand" href=${href("overview")}><img src=${new URL("icon.svg", import.meta.url)} alt="" width="26" height="26" /><span>headwater</span></a>
      <nav aria-label="Pages">
        ${NAVIGATION.filter((item) => !item.feature || features[item.feature] !== false).map((item) => html`<a key=${item.title} href=${href(...item.to)} aria-current=${isCurrent(item, names) ? "page" : null}>${item.title}</a>`)}
      </nav>
      <footer><${ThemeSwitch} />${features.version && html`<small>version ${features.version}</small>`}</footer>
    </div></aside>
    <main id="main" tabindex="-1"><${ConnectionBanner} /><${Page} names=${names} /></main>
    <${TokenDialog} />
  `;
}

/** Flink's `/config`: what this server lets one do. Asked again when a token was entered. */
function useFeatures() {
  const [features, setFeatures] = useState({});
  useEffect(() => {
    const read = () => get("config").then((config) => setFeatures({ ...config.features, version: config["headwater-version"] || config["flink-version"] }), () => {});
    read();
    addEventListener("tokenentered", read);
    return () => removeEventListener("tokenentered", read);
  }, []);
  return features;
}

function Page({ names }) {
  const [first, second, jobId, tab = "overview", rest] = names;
  if (first === "overview") return html`<${OverviewPage} />`;
  if (first === "job" && jobId) return html`<${JobPage} key=${jobId} jobId=${jobId} tab=${tab} rest=${rest} />`;
  if (first === "job") return html`<${JobsPage} completed=${second === "completed"} />`;
  if (first === "task-manager") return html`<${TaskManagersPage} />`;
  if (first === "job-manager") return html`<${JobManagerPage} tab=${second || "config"} />`;
  if (first === "submit") return html`<${SubmitPage} />`;
  return html`<div class="notice empty"><strong>There is no page at this address</strong><p><a href=${href("overview")}>To the overview</a></p></div>`;
}

const isCurrent = (item, names) => item.to.every((name, index) => names[index] === name);

render(html`<${App} />`, document.getElementById("app"));
