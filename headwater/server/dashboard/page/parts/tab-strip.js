// Tabs as links: each has an address, the arrow keys move between them.
import { html } from "../dom.js";

/** `tabs`: `{name, title, href, count?}`. */
export function TabStrip({ tabs, chosen, label }) {
  function onKeyDown(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const links = [...event.currentTarget.querySelectorAll("a")];
    const next = links[(links.indexOf(document.activeElement) + step + links.length) % links.length];
    next.focus();
    next.click();
  }
  return html`
    <div class="tabs" role="tablist" aria-label=${label} onKeyDown=${onKeyDown}>
      ${tabs.map(
        (tab) => html`
          <a key=${tab.name} role="tab" href=${tab.href} aria-selected=${String(tab.name === chosen)} tabindex=${tab.name === chosen ? 0 : -1}>
            ${tab.title}${tab.count ? html`<span class="count bad">${tab.count}</span>` : null}
          </a>
        `,
      )}
    </div>
  `;
}
