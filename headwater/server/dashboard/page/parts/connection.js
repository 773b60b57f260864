// What one sees when the server is away, or wants a token.
import { connection, onConnection, setToken } from "../api.js";
import { html, useEffect, useState } from "../dom.js";
import { clock } from "../format.js";
import { Dialog } from "./dialog.js";

export function useConnection() {
  const [seen, setSeen] = useState({ ...connection });
  useEffect(() => onConnection(() => setSeen({ ...connection })), []);
  return seen;
}

export function ConnectionBanner() {
  const { state, since } = useConnection();
  if (state !== "gone") return null;
  return html`
    <div class="banner bad" role="alert">
      <strong>The server does not answer</strong> since ${clock(since)}. What you see is from then; the page goes on asking.
    </div>
  `;
}

export function TokenDialog() {
  const { state, wrongToken, since } = useConnection();
  const [dismissed, setDismissed] = useState(0);
  const [token, setText] = useState("");
  if (state !== "token") return null;
  if (dismissed === since) return html`<button class="token-button primary" onClick=${() => setDismissed(0)}>Enter the token</button>`;
  function submit(event) {
    event.preventDefault();
    setToken(token.trim());
    setText("");
    dispatchEvent(new Event("tokenentered"));
  }
  return html`
    <${Dialog} title="This server wants a token" onClose=${() => setDismissed(since)}>
      <form onSubmit=${submit}>
        <p>${wrongToken ? "The server refused the token that this page has." : "Whoever started the server knows it: it is the value of headwater.server.token."} It is kept for this browser tab only.</p>
        <label>Token<input type="password" autocomplete="off" autofocus required value=${token} onInput=${(event) => setText(event.target.value)} /></label>
        <div class="buttons"><button class="primary">Continue</button></div>
      </form>
    <//>
  `;
}
