// The job as the page draws it, from Flink's `/jobs/:id` and the figures of `/jobs/:id/live`. Pure functions.

const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
const known = (values) => values.map(Number).filter((value) => Number.isFinite(value));
const max = (values) => (known(values).length ? Math.max(...known(values)) : undefined);
const min = (values) => (known(values).length ? Math.min(...known(values)) : undefined);

/** The figures of one vertex: `{subtasks: [{name: number}], aggregate: {name: number}}`, empty if there are none. */
export const figuresOf = (live, vertexId) => ({ aggregate: {}, subtasks: [], ...(live?.vertices?.[vertexId] || {}) });

const perSecond = (figures, name) => {
  const values = known(figures.subtasks.map((subtask) => subtask[name]));
  return values.length ? sum(values) : figures.aggregate[name];
};

/** A share of time from Flink's `…TimeMsPerSecond`; the worst subtask counts, as on Flink's page. */
const share = (figures, name) => {
  const worst = max(figures.subtasks.map((subtask) => subtask[name])) ?? figures.aggregate[name];
  return worst === undefined ? undefined : worst / 1000;
};

/** The vertices in the order of the graph, each with what its node shows. */
export function nodesOf(job, live) {
  const planned = Object.fromEntries((job.plan?.nodes || []).map((node) => [node.id, node]));
  const findings = live?.findings || [];
  return job.vertices.map((vertex) => {
    const figures = figuresOf(live, vertex.id);
    const inputs = (planned[vertex.id]?.inputs || []).map((input) => ({ id: input.id, ship: input.ship_strategy }));
    const finding = findings.find((each) => each.vertex === vertex.id);
    return {
      id: vertex.id,
      name: vertex.name,
      parallelism: vertex.parallelism,
      status: vertex.status,
      inputs,
      isSource: !inputs.length,
      tasks: vertex.tasks,
      busy: share(figures, "busyTimeMsPerSecond"),
      idle: share(figures, "idleTimeMsPerSecond"),
      backPressured: share(figures, "backPressuredTimeMsPerSecond"),
      in: perSecond(figures, "numRecordsInPerSecond"),
      out: perSecond(figures, "numRecordsOutPerSecond"),
      totalIn: vertex.metrics?.["read-records"],
      totalOut: vertex.metrics?.["write-records"],
      watermark: min(figures.subtasks.map((subtask) => subtask.currentInputWatermark ?? subtask.currentOutputWatermark)),
      lag: max(figures.subtasks.map((subtask) => subtask.watermarkLag)),
      stateEntries: perSecond(figures, "stateEntries"),
      stateBytes: perSecond(figures, "stateBytes"),
      finding: finding?.text,
    };
  });
}

/** Records per second of each edge, `{"source target": n}`: as measured, or else what the source of the edge emits. */
export function edgeRates(nodes, live) {
  const rates = {};
  for (const edge of live?.edges || []) rates[`${edge.source} ${edge.target}`] = edge.numRecordsPerSecond;
  const out = Object.fromEntries(nodes.map((node) => [node.id, node.out]));
  for (const node of nodes) for (const input of node.inputs) rates[`${input.id} ${node.id}`] ??= out[input.id];
  return rates;
}

/** Flink's measure of skew, in per cent: how far subtasks are from their mean, weighted (0: all alike). */
export function skew(values) {
  const numbers = known(values);
  const mean = sum(numbers) / numbers.length;
  if (numbers.length < 2 || mean === 0) return 0;
  const deviation = sum(numbers.map((number) => Math.abs(number - mean))) / numbers.length;
  return Math.min(100, (deviation / mean) * 100);
}

/** The series `name` of `live.history.job` as `{times, values}`, empty if nothing is kept. */
export function seriesOf(live, name) {
  const history = live?.history || {};
  const times = history.time || [];
  return history.job?.[name] || times.map(() => null);
}
