/**
 * Where the tools of a map go: those that hang together close to each other, by ForceAtlas2, in a worker.
 *
 * It begins with the categories on a circle, so that the same tools come to the same places each time.
 */

import iterate from 'graphology-layout-forceatlas2/iterate.js';

/** Numbers of a node, and of an edge, in the arrays that are iterated over. */
const NODE = 10;
const EDGE = 3;

/** What a worker is asked: of each tool the number of its category, of each connection its ends and how strong it is. */
export interface LayoutQuestion {
  categories: number[];
  edges: [from: number, to: number, weight: number][];
  iterations: number;
}

/** Where the tools are after so many iterations: x and y of each. */
export interface LayoutAnswer {
  places: Float32Array;
  isLast: boolean;
}

const SETTINGS = {
  linLogMode: false,
  outboundAttractionDistribution: false,
  adjustSizes: false,
  edgeWeightInfluence: 1,
  scalingRatio: 10,
  // Groups that hardly hang together stay on one map.
  strongGravityMode: true,
  gravity: 0.05,
  barnesHutTheta: 0.7,
};

/** Between two answers, in ms. */
const TOLD_EVERY_MS = 120;

onmessage = ({ data }: MessageEvent<LayoutQuestion>) => {
  const { categories, edges, iterations } = data;
  const nodes = new Float32Array(categories.length * NODE);
  const matrix = new Float32Array(edges.length * EDGE);
  const groups = Math.max(...categories, 0) + 1;
  const radius = 10 * Math.sqrt(categories.length);
  const size = 2.4 * Math.sqrt(categories.length);
  categories.forEach((category, index) => {
    const angle = (2 * Math.PI * category) / groups;
    // The golden angle spreads what begins at one place.
    const turn = index * 2.399963;
    const away = size * Math.sqrt(((index * 7919) % 101) / 101);
    nodes[index * NODE] = radius * Math.cos(angle) + away * Math.cos(turn);
    nodes[index * NODE + 1] = radius * Math.sin(angle) + away * Math.sin(turn);
    nodes[index * NODE + 6] = 1;
    nodes[index * NODE + 7] = 1;
    nodes[index * NODE + 8] = 1;
  });
  edges.forEach(([from, to, weight], index) => {
    matrix.set([from * NODE, to * NODE, weight], index * EDGE);
    for (const end of [from, to]) nodes[end * NODE + 6] = (nodes[end * NODE + 6] ?? 0) + weight;
  });
  const settings = {
    ...SETTINGS,
    slowDown: 1 + Math.log(Math.max(1, categories.length)),
    barnesHutOptimize: categories.length > 1000,
  };
  let told = performance.now();
  for (let done = 1; done <= iterations; done += 1) {
    iterate(settings, nodes, matrix);
    const isLast = done === iterations;
    if (!isLast && performance.now() - told < TOLD_EVERY_MS) continue;
    told = performance.now();
    const places = new Float32Array(categories.length * 2);
    for (let index = 0; index < categories.length; index += 1) {
      places[index * 2] = nodes[index * NODE] ?? 0;
      places[index * 2 + 1] = nodes[index * NODE + 1] ?? 0;
    }
    const answer: LayoutAnswer = { places, isLast };
    postMessage(answer);
  }
};
