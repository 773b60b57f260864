// Where the nodes of a job graph stand: layers from left to right by the longest path from a source. Pure arithmetic.

export const NODE = { width: 244, height: 160 };
const GAP = { x: 96, y: 28 };

/**
 * `nodes`: `{id, inputs: [id, …]}`. Returns `{positions: {id: {x, y}}, width, height}`; x, y is a node's upper left corner.
 *
 * Within a layer, nodes are ordered by the mean place of their neighbours (barycentres, a few sweeps), which removes most
 * crossings in graphs of the size that people write.
 */
export function layered(nodes) {
  const layerOf = longestPaths(nodes);
  const layers = [];
  for (const node of nodes) (layers[layerOf[node.id]] ||= []).push(node.id);
  order(layers, nodes);

  const tallest = Math.max(1, ...layers.map((layer) => layer.length));
  const height = tallest * NODE.height + (tallest - 1) * GAP.y;
  const positions = {};
  layers.forEach((layer, depth) => {
    const used = layer.length * NODE.height + (layer.length - 1) * GAP.y;
    layer.forEach((id, place) => {
      positions[id] = { x: depth * (NODE.width + GAP.x), y: (height - used) / 2 + place * (NODE.height + GAP.y) };
    });
  });
  return { positions, width: layers.length * NODE.width + Math.max(0, layers.length - 1) * GAP.x, height };
}

function longestPaths(nodes) {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const depth = {};
  const visit = (id, path) => {
    if (id in depth) return depth[id];
    if (path.has(id)) return 0; // a loop: an iteration's back edge does not push its head to the right
    path.add(id);
    const inputs = byId.get(id).inputs.filter((input) => byId.has(input));
    const found = inputs.length ? Math.max(...inputs.map((input) => visit(input, path) + 1)) : 0;
    path.delete(id);
    return (depth[id] = found);
  };
  nodes.forEach((node) => visit(node.id, new Set()));
  return depth;
}

function order(layers, nodes) {
  const neighbours = Object.fromEntries(nodes.map((node) => [node.id, { before: [...node.inputs], after: [] }]));
  for (const node of nodes) for (const input of node.inputs) neighbours[input]?.after.push(node.id);
  for (let sweep = 0; sweep < 6; sweep += 1) {
    const forward = sweep % 2 === 0;
    const place = {};
    layers.forEach((layer) => layer.forEach((id, index) => (place[id] = index - (layer.length - 1) / 2)));
    for (const layer of forward ? layers : [...layers].reverse()) {
      const weight = (id) => mean(neighbours[id][forward ? "before" : "after"].filter((other) => other in place).map((other) => place[other])) ?? place[id];
      const weights = new Map(layer.map((id) => [id, weight(id)]));
      layer.sort((a, b) => weights.get(a) - weights.get(b));
      layer.forEach((id, index) => (place[id] = index - (layer.length - 1) / 2));
    }
  }
}

const mean = (numbers) => (numbers.length ? numbers.reduce((sum, number) => sum + number, 0) / numbers.length : null);

/** The path of an edge, and the middle of it for its label. */
export function edgePath(from, to) {
  const [x1, y1] = [from.x + NODE.width, from.y + NODE.height / 2];
  const [x2, y2] = [to.x, to.y + NODE.height / 2];
  const bend = Math.max(40, (x2 - x1) / 2);
  return { d: `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2 - 7} ${y2}`, label: { x: (x1 + x2) / 2, y: (y1 + y2) / 2 } };
}
