/** Points over a band, by uPlot: ten thousand are drawn in some ten milliseconds. */

import 'uplot/dist/uPlot.min.css';

import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';

import { briefly } from './format.js';

export interface Point {
  /** Seconds since the epoch. */
  at: number;
  ms: number;
  isBad: boolean;
}

/** What the model says now, in ms. */
export interface Band {
  low: number;
  middle: number;
  high: number;
}

export function Plot({ points, band, label }: { points: readonly Point[]; band: Band | undefined; label: string }) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = place.current;
    if (element === null || points.length === 0) return undefined;
    const sorted = [...points].sort((one, other) => one.at - other.at);
    const style = getComputedStyle(document.documentElement);
    const colour = (name: string) => style.getPropertyValue(name).trim();
    const of = (take: (point: Point) => number | null) => sorted.map(take);
    const fixed = (value: number | undefined) => sorted.map(() => value ?? null);
    const data: uPlot.AlignedData = [
      sorted.map((point) => point.at),
      fixed(band?.high),
      fixed(band?.low),
      fixed(band?.middle),
      of((point) => (point.isBad ? null : Math.max(1, point.ms))),
      of((point) => (point.isBad ? Math.max(1, point.ms) : null)),
    ];
    const axis = {
      stroke: colour('--soft'),
      grid: { stroke: colour('--line'), width: 1 },
      ticks: { stroke: colour('--line') },
    };
    const dots = (name: string, stroke: string): uPlot.Series => ({
      label: name,
      stroke,
      fill: stroke,
      paths: () => null,
      points: { show: true, size: 4, stroke, fill: stroke, width: 0 },
    });
    const line = (name: string, dash?: number[]): uPlot.Series => ({
      label: name,
      stroke: colour('--plot'),
      width: 1,
      points: { show: false },
      ...(dash && { dash }),
    });
    const plot = new uPlot(
      {
        width: element.clientWidth,
        height: 320,
        legend: { show: false },
        cursor: { drag: { x: true, y: false } },
        scales: { y: { distr: 3, log: 10 } },
        bands: [{ series: [1, 2], fill: colour('--plot-soft') }],
        axes: [axis, { ...axis, size: 70, values: (_, splits) => splits.map((ms) => (ms == null ? '' : briefly(ms))) }],
        series: [
          {},
          line('high'),
          line('low'),
          line('middle', [6, 4]),
          dots('calls', colour('--text')),
          dots('given up', colour('--plot-bad')),
        ],
      },
      data,
      element,
    );
    const observer = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: 320 }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, [points, band?.low, band?.middle, band?.high]);
  return <div class="plot" ref={place} role="img" aria-label={label} />;
}
