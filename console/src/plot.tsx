/**
 * Points over what was forecast of each. The scales, the axes and zooming are uPlot's; what is between them is drawn here,
 * by columns of pixels: of forecasts that fall together the outermost are drawn, and no path has more parts than columns.
 */

import 'uplot/dist/uPlot.min.css';

import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';

import { type Columns, columnsOf, type Frame } from './columns.js';
import { briefly } from './format.js';
import type { Points } from './points.js';

const HEIGHT = 320;

/** Around calls that are all of one moment, in seconds: uPlot would show years. */
const AROUND = 60;

/** A dot's side, in CSS pixels; of many it is less, and they let the band through. */
const DOT = 3;
const DOT_OF_MANY = 2.4;
const OPACITY_OF_MANY = 0.6;
const MANY = 500;

function frameOf({ bbox, scales }: uPlot): Frame {
  const [from, to] = [scales['x']?.min ?? 0, scales['x']?.max ?? 1];
  const [low, high] = [Math.log10(scales['y']?.min ?? 1), Math.log10(scales['y']?.max ?? 10)];
  const { left, top, width, height } = bbox;
  return { left, top, from, high, across: width / (to - from || 1), up: height / (high - low || 1) };
}

/** What draws levels of columns in a frame. */
function drawer(ctx: CanvasRenderingContext2D, { x, ends }: Columns, { top, high, up }: Frame) {
  const y = (ms: number | undefined) => top + (high - Math.log10(Math.max(1, ms ?? 1))) * up;
  /** Each stretch from one end to the next. */
  const stretches = (of: (from: number, to: number) => void) =>
    ends.forEach((end, place) => of(ends[place - 1] ?? 0, end));
  return {
    band: (over: Float64Array, under: Float64Array) => {
      ctx.beginPath();
      stretches((from, to) => {
        ctx.moveTo(x[from] ?? 0, y(over[from]));
        for (let place = from; place < to; place += 1) ctx.lineTo(x[place] ?? 0, y(over[place]));
        for (let place = to - 1; place >= from; place -= 1) ctx.lineTo(x[place] ?? 0, y(under[place]));
        ctx.closePath();
      });
      ctx.fill();
    },
    /** In a column from the greatest to the least. */
    line: (most: Float64Array, least: Float64Array) => {
      ctx.beginPath();
      stretches((from, to) => {
        ctx.moveTo(x[from] ?? 0, y(most[from]));
        for (let place = from; place < to; place += 1) {
          ctx.lineTo(x[place] ?? 0, y(most[place]));
          if (most[place] !== least[place]) ctx.lineTo(x[place] ?? 0, y(least[place]));
        }
      });
      ctx.stroke();
    },
  };
}

/** Dots as squares: circles of their own take ten times as long. Those that were given up are above the others. */
function dots(ctx: CanvasRenderingContext2D, points: Points, frame: Frame, colours: readonly string[]): void {
  const { at, logs, isGivenUp, givenUp } = points;
  const total = at.length;
  const side = (total > MANY ? DOT_OF_MANY : DOT) * devicePixelRatio;
  const { from, high, across, up } = frame;
  const left = frame.left - side / 2;
  const top = frame.top - side / 2;
  ctx.globalAlpha = total > MANY ? OPACITY_OF_MANY : 1;
  for (let kind = 0; kind <= (givenUp > 0 ? 1 : 0); kind += 1) {
    ctx.fillStyle = colours[kind] ?? '';
    for (let index = 0; index < total; index += 1) {
      if (isGivenUp[index] !== kind) continue;
      const x = left + ((at[index] as number) - from) * across;
      ctx.fillRect(x, top + (high - (logs[index] as number)) * up, side, side);
    }
  }
}

function draw(plot: uPlot, points: Points, colour: (name: string) => string): void {
  const { ctx, bbox } = plot;
  const frame = frameOf(plot);
  const columns = columnsOf(points, frame);
  const { band, line } = drawer(ctx, columns, frame);
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.fillStyle = colour('--band-wide');
  band(columns.p95, columns.p05);
  ctx.fillStyle = colour('--band');
  band(columns.p75, columns.p25);
  ctx.strokeStyle = colour('--plot');
  ctx.lineWidth = devicePixelRatio;
  line(columns.most, columns.least);
  dots(ctx, points, frame, [colour('--text'), colour('--plot-bad')]);
  ctx.restore();
}

export function Plot({ points, label }: { points: Points; label: string }) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = place.current;
    if (element === null || points.at.length === 0) return undefined;
    const style = getComputedStyle(document.documentElement);
    const colour = (name: string) => style.getPropertyValue(name).trim();
    const axis = {
      stroke: colour('--soft'),
      grid: { stroke: colour('--line'), width: 1 },
      ticks: { stroke: colour('--line') },
    };
    const [first = 0, last = 0] = [points.at[0], points.at.at(-1)];
    const undrawn: uPlot.Series = { paths: () => null, points: { show: false } };
    const plot = new uPlot(
      {
        width: element.clientWidth,
        height: HEIGHT,
        legend: { show: false },
        cursor: { drag: { x: true, y: false }, points: { show: false } },
        scales: {
          x: first === last ? { range: [first - AROUND, last + AROUND] } : {},
          y: { distr: 3, log: 10 },
        },
        axes: [axis, { ...axis, size: 70, values: (_, splits) => splits.map((ms) => (ms == null ? '' : briefly(ms))) }],
        hooks: { draw: [(drawn) => draw(drawn, points, colour)] },
        series: [{}, undrawn, undrawn],
      },
      points.extent,
      element,
    );
    const observer = new ResizeObserver(() => {
      if (plot.width !== element.clientWidth) plot.setSize({ width: element.clientWidth, height: HEIGHT });
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, [points]);
  return <div class="plot" ref={place} role="img" aria-label={label} />;
}
