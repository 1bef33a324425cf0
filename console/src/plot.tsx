/** Points over what was forecast of each, by uPlot: ten thousand are drawn in some ten milliseconds. */

import 'uplot/dist/uPlot.min.css';

import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';

import { briefly } from './format.js';

export interface Point {
  /** Seconds since the epoch. */
  at: number;
  ms: number;
  isBad: boolean;
  /** P05, P25, P50, P75 and P95 as the model said them just before it learnt the call, in ms. */
  predicted: readonly number[] | undefined;
}

/** A dot's side, in CSS pixels; of many it is less, and they let the band through. */
const DOT = 3;
const DOT_OF_MANY = 2.4;
const MANY = 500;

/** Dots of these series as squares: circles of their own take ten times as long. */
function scatter({ ctx, data, bbox, valToPos }: uPlot, series: readonly number[], colours: readonly string[]): void {
  const isMany = data[0].length > MANY;
  const side = (isMany ? DOT_OF_MANY : DOT) * devicePixelRatio;
  ctx.save();
  ctx.globalAlpha = isMany ? 0.6 : 1;
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  series.forEach((number, place) => {
    ctx.fillStyle = colours[place] ?? '';
    data[0].forEach((at, index) => {
      const ms = data[number]?.[index];
      if (ms == null) return;
      ctx.fillRect(valToPos(at, 'x', true) - side / 2, valToPos(ms, 'y', true) - side / 2, side, side);
    });
  });
  ctx.restore();
}

/** The points in the order of their times. */
export function Plot({ points, label }: { points: readonly Point[]; label: string }) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = place.current;
    if (element === null || points.length === 0) return undefined;
    const style = getComputedStyle(document.documentElement);
    const colour = (name: string) => style.getPropertyValue(name).trim();
    const of = (take: (point: Point) => number | null) => points.map(take);
    // No duration is below 1 ms on an axis of logarithms.
    const said = (level: number) =>
      of((point) => (point.predicted && Math.max(1, point.predicted[level] ?? 1)) ?? null);
    const data: uPlot.AlignedData = [
      points.map((point) => point.at),
      said(4),
      said(0),
      said(3),
      said(1),
      said(2),
      of((point) => (point.isBad ? null : Math.max(1, point.ms))),
      of((point) => (point.isBad ? Math.max(1, point.ms) : null)),
    ];
    const axis = {
      stroke: colour('--soft'),
      grid: { stroke: colour('--line'), width: 1 },
      ticks: { stroke: colour('--line') },
    };
    // They are drawn by `scatter`.
    const dots = (label: string): uPlot.Series => ({ label, paths: () => null, points: { show: false } });
    const edge = (name: string): uPlot.Series => ({ label: name, width: 0, points: { show: false } });
    const plot = new uPlot(
      {
        width: element.clientWidth,
        height: 320,
        legend: { show: false },
        cursor: { drag: { x: true, y: false } },
        scales: { y: { distr: 3, log: 10 } },
        bands: [
          { series: [1, 2], fill: colour('--band-wide') },
          { series: [3, 4], fill: colour('--band') },
        ],
        axes: [axis, { ...axis, size: 70, values: (_, splits) => splits.map((ms) => (ms == null ? '' : briefly(ms))) }],
        hooks: { draw: [(drawn) => scatter(drawn, [6, 7], [colour('--text'), colour('--plot-bad')])] },
        series: [
          {},
          edge('P95'),
          edge('P05'),
          edge('P75'),
          edge('P25'),
          { label: 'P50', stroke: colour('--plot'), width: 1, points: { show: false } },
          dots('calls'),
          dots('given up'),
        ],
      },
      data,
      element,
    );
    const observer = new ResizeObserver(() => {
      if (plot.width !== element.clientWidth) plot.setSize({ width: element.clientWidth, height: 320 });
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, [points]);
  return <div class="plot" ref={place} role="img" aria-label={label} />;
}
