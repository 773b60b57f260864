// What stands where data would stand: nothing yet, nothing at all, or a reason why not.
import { html } from "../dom.js";

export const Loading = ({ children = "Loading …" }) => html`<p class="notice loading" role="status">${children}</p>`;

export const Empty = ({ title, children }) => html`
  <div class="notice empty"><strong>${title}</strong>${children && html`<p>${children}</p>`}</div>
`;

export const Problem = ({ error, title = "This did not work" }) => html`
  <div class="notice problem" role="alert">
    <strong>${title}</strong>
    <pre>${error.message}</pre>
  </div>
`;

/**
 * The data of `usePolled` as `children(data)`; before them a placeholder, and after a failure without data its reason.
 * Old data stay on the page while the server is away: the shell's banner says so.
 */
export function Fetched({ of: { data, error }, title, children }) {
  if (data !== null) return children(data);
  if (error) return html`<${Problem} error=${error} title=${title || "The server has no answer"} />`;
  return html`<${Loading} />`;
}
