/** The map itself, drawn by sigma. It is loaded with the page that shows it, and not before. */

import Graph from 'graphology';
import Sigma from 'sigma';
import { EdgeArrowProgram, EdgeRectangleProgram } from 'sigma/rendering';

import type { Connection, Kind } from './graph.js';
import type { LayoutAnswer, LayoutQuestion } from './map-layout.js';
import layoutFile from './map-layout.ts?worker&url';

export interface MapData {
  tools: readonly { name: string; category: string }[];
  connections: readonly Connection[];
  categories: readonly string[];
}

/** What is done with the map by whoever looks at it. */
export interface MapEvents {
  onSelect: (tool: string | undefined) => void;
  onZoom: (share: number) => void;
  onPlaced: () => void;
}

/** How thick each kind is, in pixels; with a transition's arrow, so that colour alone tells nothing. */
const WIDTHS: Record<Kind, number> = { conflict: 3, alternative: 1.4, complement: 0.8, transition: 1.8 };
/** How strongly each pulls. */
const WEIGHTS: Record<Kind, number> = { conflict: 0.6, alternative: 1.2, complement: 1, transition: 1.5 };
/** Connections from which on they are left out while the map moves. */
const MANY = 4000;

/** Can this browser draw it? */
export function canDraw(): boolean {
  try {
    return document.createElement('canvas').getContext('webgl2') !== null;
  } catch {
    return false;
  }
}

/** A file of ours may be a worker; the page's policy wants that said. */
function layoutAddress(): string {
  const make = (address: string) => address;
  const policies = (globalThis as { trustedTypes?: { createPolicy: (name: string, rules: object) => unknown } })
    .trustedTypes;
  const policy = policies?.createPolicy('almanac-map', { createScriptURL: make }) as
    { createScriptURL: typeof make } | undefined;
  return policy === undefined ? layoutFile : policy.createScriptURL(layoutFile);
}

let address: string | undefined;

function colours(): (name: string) => string {
  const style = getComputedStyle(document.documentElement);
  return (name) => style.getPropertyValue(name).trim();
}

/** A colour of a category: as many as there are, as far from each other as can be, readable on light and dark. */
export function categoryColour(index: number, all: number): string {
  const isDark = matchMedia('(prefers-color-scheme: dark)').matches;
  return hex((index * 360) / Math.max(1, all), isDark ? 0.55 : 0.6, isDark ? 0.66 : 0.42);
}

/** sigma reads no `hsl()`. */
function hex(hue: number, saturation: number, lightness: number): string {
  const part = (offset: number) => {
    const k = (offset + hue / 30) % 12;
    const value = lightness - saturation * Math.min(lightness, 1 - lightness) * Math.max(-1, Math.min(k - 3, 9 - k, 1));
    return Math.round(value * 255)
      .toString(16)
      .padStart(2, '0');
  };
  return `#${part(0)}${part(8)}${part(4)}`;
}

export class MapView {
  readonly #graph = new Graph({ multi: true });
  readonly #sigma: Sigma;
  readonly #worker: Worker;
  #kinds: ReadonlySet<string> = new Set();
  #category = '';
  #selected: string | undefined;
  #hovered: string | undefined;

  constructor(place: HTMLElement, data: MapData, events: MapEvents) {
    const colour = colours();
    const [line, text, faded] = [colour('--soft'), colour('--text'), colour('--line')];
    const kinds: Record<Kind, string> = {
      conflict: colour('--plot-bad'),
      alternative: colour('--plot'),
      complement: colour('--good'),
      transition: line,
    };
    const degrees = new Map<string, number>();
    for (const { from, to } of data.connections)
      for (const end of [from, to]) degrees.set(end, (degrees.get(end) ?? 0) + 1);
    data.tools.forEach(({ name, category }, index) => {
      const group = data.categories.indexOf(category);
      const angle = (2 * Math.PI * group) / Math.max(1, data.categories.length);
      this.#graph.addNode(name, {
        x: Math.cos(angle) + 0.02 * Math.cos(index),
        y: Math.sin(angle) + 0.02 * Math.sin(index),
        size: Math.min(11, 2.5 + Math.sqrt(degrees.get(name) ?? 0)),
        label: name,
        category,
        color: categoryColour(group, data.categories.length),
      });
    });
    for (const { kind, from, to, share } of data.connections) {
      this.#graph.addEdge(from, to, {
        kind,
        size: kind === 'transition' ? WIDTHS.transition * (0.5 + share) : WIDTHS[kind],
        color: kinds[kind],
        type: kind === 'transition' ? 'arrow' : 'line',
      });
    }
    this.#sigma = new Sigma(this.#graph, place, {
      allowInvalidContainer: true,
      defaultEdgeType: 'line',
      edgeProgramClasses: { line: EdgeRectangleProgram, arrow: EdgeArrowProgram },
      hideEdgesOnMove: data.connections.length > MANY,
      labelColor: { color: text },
      labelDensity: 0.6,
      labelFont: 'system-ui, sans-serif',
      labelRenderedSizeThreshold: 7,
      labelSize: 12,
      minCameraRatio: 0.02,
      maxCameraRatio: 4,
      zIndex: true,
      defaultDrawNodeHover: (context, node) => {
        context.font = '600 12px system-ui, sans-serif';
        const width = context.measureText(node.label ?? '').width + 12;
        context.fillStyle = colour('--card');
        context.strokeStyle = line;
        context.beginPath();
        context.roundRect(node.x + node.size + 2, node.y - 11, width, 22, 5);
        context.fill();
        context.stroke();
        context.fillStyle = text;
        context.fillText(node.label ?? '', node.x + node.size + 8, node.y + 4);
      },
      nodeReducer: (name, attributes) => {
        const focus = this.#hovered ?? this.#selected;
        const isHidden = this.#category !== '' && attributes['category'] !== this.#category;
        const isNear = focus === undefined || focus === name || this.#graph.areNeighbors(focus, name);
        return {
          ...attributes,
          hidden: isHidden,
          highlighted: name === this.#selected,
          zIndex: isNear ? 1 : 0,
          ...(!isNear && { color: faded, label: '' }),
          ...(focus !== undefined && isNear && { forceLabel: true }),
        };
      },
      edgeReducer: (edge, attributes) => {
        const focus = this.#hovered ?? this.#selected;
        const isOf = focus === undefined || this.#graph.hasExtremity(edge, focus);
        return { ...attributes, hidden: !this.#kinds.has(attributes['kind'] as string) || !isOf };
      },
    });
    this.#sigma.on('clickNode', ({ node }) => events.onSelect(node));
    this.#sigma.on('clickStage', () => events.onSelect(undefined));
    this.#sigma.on('enterNode', ({ node }) => this.#hover(node));
    this.#sigma.on('leaveNode', () => this.#hover(undefined));
    const camera = this.#sigma.getCamera();
    camera.on('updated', ({ ratio }) => events.onZoom(1 / ratio));
    address ??= layoutAddress();
    this.#worker = new Worker(address, { type: 'module' });
    this.#worker.onmessage = ({ data: { places, isLast } }: MessageEvent<LayoutAnswer>) => {
      this.#place(places);
      if (isLast) {
        this.#worker.terminate();
        events.onPlaced();
      }
    };
    this.#worker.postMessage(question(data));
  }

  /** Shows these kinds of connections only, and the tools of one category, or of all. */
  filter(kinds: ReadonlySet<string>, category: string): void {
    [this.#kinds, this.#category] = [kinds, category];
    this.#sigma.refresh({ skipIndexation: true });
  }

  /** Marks a tool, and goes to it. */
  select(tool: string | undefined, isToBeSeen: boolean): void {
    this.#selected = tool !== undefined && this.#graph.hasNode(tool) ? tool : undefined;
    this.#sigma.refresh({ skipIndexation: true });
    const place = this.#selected === undefined ? undefined : this.#sigma.getNodeDisplayData(this.#selected);
    if (isToBeSeen && place !== undefined) this.#go({ x: place.x, y: place.y, ratio: 0.35 });
  }

  /** Nearer by this factor, or farther if it is less than one. */
  zoom(factor: number): void {
    this.#go({ ratio: this.#sigma.getCamera().getBoundedRatio(this.#sigma.getCamera().ratio / factor) });
  }

  /** Moves by this share of what is seen. */
  pan(right: number, up: number): void {
    const { x, y, ratio } = this.#sigma.getCamera();
    this.#go({ x: x + right * ratio, y: y + up * ratio });
  }

  /** All of it. */
  whole(): void {
    this.#go({ x: 0.5, y: 0.5, ratio: 1, angle: 0 });
  }

  end(): void {
    this.#worker.terminate();
    this.#sigma.kill();
  }

  #go(to: { x?: number; y?: number; ratio?: number; angle?: number }): void {
    const isStill = matchMedia('(prefers-reduced-motion: reduce)').matches;
    // Also where nothing is to move: it ends what the wheel began.
    void this.#sigma.getCamera().animate(to, { duration: isStill ? 1 : 200 });
  }

  #hover(tool: string | undefined): void {
    this.#hovered = tool;
    this.#sigma.refresh({ skipIndexation: true });
  }

  #place(places: Float32Array): void {
    let index = 0;
    this.#graph.updateEachNodeAttributes(
      (_, attributes) => {
        const next = { ...attributes, x: places[index * 2] ?? 0, y: places[index * 2 + 1] ?? 0 };
        index += 1;
        return next;
      },
      { attributes: ['x', 'y'] },
    );
  }
}

function question({ tools, connections, categories }: MapData): LayoutQuestion {
  const numbers = new Map(tools.map(({ name }, index) => [name, index]));
  return {
    categories: tools.map(({ category }) => categories.indexOf(category)),
    edges: connections.map(({ from, to, kind }) => [numbers.get(from) ?? 0, numbers.get(to) ?? 0, WEIGHTS[kind]]),
    iterations: tools.length > 2000 ? 150 : 400,
  };
}
