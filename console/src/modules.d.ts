/** One iteration of ForceAtlas2 over arrays of nodes and edges, which it changes. */
declare module 'graphology-layout-forceatlas2/iterate.js' {
  export default function iterate(settings: object, nodes: Float32Array, edges: Float32Array): void;
}
