// A modal question. The browser's own <dialog> traps the focus, and Escape closes it.
import { html, useEffect, useRef } from "../dom.js";

export function Dialog({ title, onClose, children, wide = false }) {
  const ref = useRef(null);
  useEffect(() => {
    const before = document.activeElement;
    ref.current.showModal();
    return () => before && before.focus && before.focus();
  }, []);
  const onBackdrop = (event) => event.target === ref.current && onClose();
  return html`
    <dialog ref=${ref} class=${wide ? "wide" : ""} aria-labelledby="dialog-title" onClose=${onClose} onMouseDown=${onBackdrop}>
      <header>
        <h2 id="dialog-title">${title}</h2>
        <button class="plain close" aria-label="Close" onClick=${onClose}>✕</button>
      </header>
      ${children}
    </dialog>
  `;
}
