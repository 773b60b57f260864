// Live lines: uPlot for charts with axes, one SVG path for a sparkline.
import { html, useEffect, useRef } from "./dom.js";
import uPlot from "./vendor/uplot.js";

const HEIGHT = 150;

/**
 * `times`: ms. `series`: `{name, values, color}`, `color` a CSS variable; gaps are null. `format` writes values of the axis
 * and of the legend.
 */
export function Chart({ title, times, series, format, note }) {
  const frame = useRef(null);
  const chart = useRef(null);
  const names = series.map((each) => each.name).join("\n");
  const seconds = times.map((ms) => ms / 1000);
  const data = [seconds, ...series.map((each) => each.values)];

  useEffect(() => {
    const make = () => {
      chart.current?.destroy();
      chart.current = new uPlot(settings(series, format, frame.current), data, frame.current);
    };
    make();
    const sizes = new ResizeObserver(() => frame.current && chart.current.setSize({ width: frame.current.clientWidth, height: HEIGHT }));
    sizes.observe(frame.current);
    addEventListener("themechange", make); // colours are drawn, not styled
    return () => {
      sizes.disconnect();
      removeEventListener("themechange", make);
      chart.current.destroy();
    };
  }, [names]);
  useEffect(() => chart.current.setData(data), [times, ...series.map((each) => each.values)]);

  const isEmpty = !series.some((each) => each.values.some((value) => value !== null && value !== undefined));
  const last = (values) => values.findLast((value) => value !== null && value !== undefined);
  return html`
    <figure class="chart" aria-label=${title}>
      <figcaption>
        <h3>${title}</h3>
        <ul class="legend">
          ${series.map((each) => html`<li key=${each.name}><span class="swatch" style=${{ background: `var(${each.color})` }}></span>${each.name} <b>${format(last(each.values))}</b></li>`)}
        </ul>
      </figcaption>
      <div ref=${frame} class="plot">${isEmpty && html`<p class="no-data">${note || "No figures yet"}</p>`}</div>
    </figure>
  `;
}

function settings(series, format, frame) {
  const css = getComputedStyle(document.documentElement);
  const color = (name) => css.getPropertyValue(name).trim();
  const axis = { stroke: color("--text-dim"), grid: { stroke: color("--line"), width: 1 }, ticks: { show: false }, font: `11px ${color("--font")}` };
  return {
    width: frame.clientWidth || 300,
    height: HEIGHT,
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, points: { size: 6 } },
    padding: [8, 26, 0, 0], // half of the last label on the right
    scales: { y: { range: (_, low, high) => [Math.min(0, low ?? 0), high > 0 ? high * 1.1 : 1] } },
    axes: [
      { ...axis, size: 24, space: 64, incrs: [1, 2, 5, 10, 15, 30, 60, 120, 180, 300, 600, 1800, 3600], values: (_, ticks) => ticks.map(clock) },
      { ...axis, size: 58, space: 34, values: (_, ticks) => ticks.map((tick) => format(tick)) },
    ],
    series: [{}, ...series.map((each) => ({ label: each.name, stroke: color(each.color), width: 1.75, fill: `color-mix(in srgb, ${color(each.color)} 12%, transparent)`, points: { show: false }, spanGaps: false }))],
    plugins: [tooltip(series, format)],
  };
}

const clock = (seconds) => {
  const date = new Date(seconds * 1000);
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map((part) => String(part).padStart(2, "0")).join(":");
};

/** The values under the pointer, in a box beside it. */
function tooltip(series, format) {
  const box = Object.assign(document.createElement("div"), { className: "tooltip", hidden: true });
  return {
    hooks: {
      init: (chart) => chart.over.append(box),
      setCursor(chart) {
        const { idx, left } = chart.cursor;
        box.hidden = idx === null || idx === undefined || left < 0;
        if (box.hidden) return;
        box.textContent = [clock(chart.data[0][idx]), ...series.map((each, index) => `${each.name} ${format(chart.data[index + 1][idx])}`)].join("\n");
        box.style.left = `${left > chart.over.clientWidth / 2 ? left - box.offsetWidth - 12 : left + 12}px`;
      },
    },
  };
}

/** A line without axes, for a row of a table. */
export function Sparkline({ values, label, width = 120, height = 26 }) {
  const known = values.filter((value) => Number.isFinite(value));
  if (known.length < 2) return html`<span class="sparkline dim" aria-label=${label}>–</span>`;
  const top = Math.max(...known, 1e-9);
  const x = (index) => (index / (values.length - 1)) * (width - 2) + 1;
  const y = (value) => height - 2 - (value / top) * (height - 5);
  let line = "";
  values.forEach((value, index) => {
    if (Number.isFinite(value)) line += `${line && Number.isFinite(values[index - 1]) ? "L" : "M"}${x(index).toFixed(1)} ${y(value).toFixed(1)}`;
  });
  return html`
    <svg class="sparkline" width=${width} height=${height} viewBox="0 0 ${width} ${height}" role="img" aria-label=${label}>
      <path class="area" d="${line}L${width - 1} ${height - 1}L1 ${height - 1}Z" /><path d=${line} />
    </svg>
  `;
}
