// Light, dark, or as the system is.
import { html, useState } from "../dom.js";

const KEY = "headwater.theme";
const CHOICES = [["", "Auto", "◐"], ["light", "Light", "☀"], ["dark", "Dark", "☾"]];

export function ThemeSwitch() {
  const [chosen, setChosen] = useState(localStorage.getItem(KEY) || "");
  function choose(theme) {
    if (theme) localStorage.setItem(KEY, theme);
    else localStorage.removeItem(KEY);
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
    setChosen(theme);
    dispatchEvent(new Event("themechange"));
  }
  return html`
    <div class="theme-switch" role="group" aria-label="Colours">
      ${CHOICES.map(([theme, name, sign]) => html`<button key=${name} aria-pressed=${String(theme === chosen)} title=${name} aria-label="${name} colours" onClick=${() => choose(theme)}>${sign}</button>`)}
    </div>
  `;
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => dispatchEvent(new Event("themechange")));
