// A table that sorts by a click (or Enter) on a column's title.
import { html, useMemo, useState } from "../dom.js";

/**
 * `columns`: `{title, cell(row), value?(row), right?, grow?}`; a column with `value` can be sorted.
 * `detail(row)`: what a row unfolds to. `sortBy`: `[column index, "asc" | "desc"]` to begin with.
 */
export function Table({ columns, rows, rowKey, detail, sortBy = null, caption, empty = "Nothing here yet." }) {
  const [order, setOrder] = useState(sortBy);
  const [open, setOpen] = useState(null);
  const sorted = useMemo(() => (order ? [...rows].sort(comparing(columns[order[0]].value, order[1])) : rows), [rows, order]);
  const sort = (index) => setOrder((now) => [index, now && now[0] === index && now[1] === "desc" ? "asc" : "desc"]);

  return html`
    <div class="table-frame">
      <table>
        ${caption && html`<caption class="sr">${caption}</caption>`}
        <thead>
          <tr>
            ${detail && html`<th class="fold"><span class="sr">Details</span></th>`}
            ${columns.map((column, index) => html`<${Title} key=${column.title} column=${column} order=${order && order[0] === index ? order[1] : null} onSort=${() => sort(index)} />`)}
          </tr>
        </thead>
        <tbody>
          ${sorted.map((row) => {
            const key = rowKey(row);
            const isOpen = open === key;
            return html`
              <tr key=${key}>
                ${detail && html`<td class="fold"><button class="plain" aria-expanded=${String(isOpen)} aria-label="Details of ${key}" onClick=${() => setOpen(isOpen ? null : key)}>${isOpen ? "▾" : "▸"}</button></td>`}
                ${columns.map((column) => html`<td key=${column.title} class=${classes(column)}>${column.cell(row)}</td>`)}
              </tr>
              ${isOpen && html`<tr class="detail" key="${key}-detail"><td colspan=${columns.length + 1}>${detail(row)}</td></tr>`}
            `;
          })}
          ${!rows.length && html`<tr><td class="nothing" colspan=${columns.length + (detail ? 1 : 0)}>${empty}</td></tr>`}
        </tbody>
      </table>
    </div>
  `;
}

function Title({ column, order, onSort }) {
  const sorted = { asc: "ascending", desc: "descending" }[order] || "none";
  if (!column.value) return html`<th scope="col" class=${classes(column)}>${column.title}</th>`;
  return html`
    <th scope="col" class=${classes(column)} aria-sort=${sorted}>
      <button class="plain sort" onClick=${onSort}>${column.title}<span aria-hidden="true">${{ asc: " ↑", desc: " ↓" }[order] || ""}</span></button>
    </th>
  `;
}

const classes = (column) => [column.right && "right", column.grow && "grow"].filter(Boolean).join(" ");

function comparing(value, direction) {
  const sign = direction === "asc" ? 1 : -1;
  return (left, right) => {
    const [a, b] = [value(left) ?? -Infinity, value(right) ?? -Infinity];
    return a === b ? 0 : (a < b ? -1 : 1) * sign;
  };
}
