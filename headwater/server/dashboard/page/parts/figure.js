// One number with its name; a bar for a share; a list of names and values.
import { html } from "../dom.js";

export const Figure = ({ name, value, note, tone = "" }) => html`
  <div class="figure ${tone}"><dt>${name}</dt><dd>${value}${note && html`<small>${note}</small>`}</dd></div>
`;

export const Figures = ({ children }) => html`<dl class="figures">${children}</dl>`;

/** `share` from 0 to 1 (more is cut off). */
export function Bar({ share, text, tone = "accent" }) {
  const width = Math.max(0, Math.min(1, Number(share) || 0)) * 100;
  return html`<span class="bar" role="img" aria-label=${text}><span class="fill ${tone}" style=${{ width: `${width}%` }}></span><span class="bar-text">${text}</span></span>`;
}

/** `rows`: `[name, value]`; rows without a value are left out. */
export const Facts = ({ rows }) => html`
  <dl class="facts">
    ${rows.filter(([, value]) => value !== undefined && value !== null && value !== "").map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}
  </dl>
`;

export const Card = ({ title, aside, children, grow = false, id }) => html`
  <section class="card ${grow ? "grow" : ""}" id=${id} aria-label=${title}>
    ${title && html`<header><h2>${title}</h2>${aside}</header>`}
    ${children}
  </section>
`;
