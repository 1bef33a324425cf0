/** Calls as columns of numbers in the order of their times, so that ten thousand take no object of their own each. */

import type { CallPoint } from './api.js';

/** Groups of calls that the axes are made by. */
const GROUPS = 500;

export interface Points {
  /** Seconds since the epoch. */
  at: Float64Array;
  /** Durations, as logarithms; none is below 1 ms there. */
  logs: Float64Array;
  /** 1 for those that their callers gave up. */
  isGivenUp: Uint8Array;
  /** What the model said of each just before it learnt the call, in ms; not a number where that was not kept. */
  p05: Float64Array;
  p25: Float64Array;
  p50: Float64Array;
  p75: Float64Array;
  p95: Float64Array;
  /** Of groups of calls after each other: the time, and the least and the most that is drawn. */
  extent: [at: Float64Array, least: Float64Array, most: Float64Array];
  givenUp: number;
  /** Of how many nothing is known of what was said. */
  unsaid: number;
  /** Of those that came to their end: how many had something said of them, and ended inside what nine in ten should. */
  judged: number;
  inside: number;
}

/** One pass over all of them, in plain steps: it runs before it is compiled, when taking arrays apart costs the most. */
export function pointsOf(calls: readonly CallPoint[]): Points {
  const total = calls.length;
  const column = () => new Float64Array(total);
  const [at, logs, p05, p25, p50, p75, p95] = [column(), column(), column(), column(), column(), column(), column()];
  const isGivenUp = new Uint8Array(total);
  const size = Math.max(1, Math.ceil(total / GROUPS));
  // The last call ends the axis of time.
  const groups = Math.ceil(total / size) + 1;
  const [moments, least, most] = [new Float64Array(groups), new Float64Array(groups), new Float64Array(groups)];
  let [givenUp, unsaid, judged, inside, group, left, low, high] = [0, 0, 0, 0, -1, 0, 0, 0];
  for (let index = 0; index < total; index += 1) {
    const call = calls[index] as CallPoint;
    const said = call.predicted_ms;
    const took = call.duration_ms < 1 ? 1 : call.duration_ms;
    if (left === 0) {
      group += 1;
      left = size;
      low = high = took;
      moments[group] = call.at_ms / 1000;
    }
    left -= 1;
    at[index] = call.at_ms / 1000;
    logs[index] = Math.log10(took);
    if (took < low) low = took;
    else if (took > high) high = took;
    const isUp = call.outcome === 'timeout' || call.outcome === 'cancelled';
    if (isUp) {
      isGivenUp[index] = 1;
      givenUp += 1;
    }
    if (said == null) {
      unsaid += 1;
      p05[index] = p25[index] = p50[index] = p75[index] = p95[index] = NaN;
    } else {
      const under = said[0] ?? 1;
      const over = said[4] ?? 1;
      p05[index] = under;
      p25[index] = said[1] ?? 1;
      p50[index] = said[2] ?? 1;
      p75[index] = said[3] ?? 1;
      p95[index] = over;
      if (under < low) low = under < 1 ? 1 : under;
      if (over > high) high = over;
      if (!isUp) {
        judged += 1;
        if (call.duration_ms >= under && call.duration_ms <= over) inside += 1;
      }
    }
    least[group] = low;
    most[group] = high;
  }
  moments[groups - 1] = at[total - 1] ?? 0;
  [least[groups - 1], most[groups - 1]] = [low, high];
  const extent: Points['extent'] = [moments, least, most];
  return { at, logs, isGivenUp, p05, p25, p50, p75, p95, extent, givenUp, unsaid, judged, inside };
}

/** How long those took that came to their end, as logarithms in order: the first four fifths, and the last. */
export interface Ended {
  earlier: Float64Array;
  latest: Float64Array;
}

export function endedOf({ logs, isGivenUp, givenUp }: Points): Ended {
  const ended = givenUp === 0 ? logs : logs.filter((_, index) => isGivenUp[index] === 0);
  const cut = Math.floor(ended.length * 0.8);
  return { earlier: ended.slice(0, cut).sort(), latest: ended.slice(cut).sort() };
}

/** How much longer the last fifth took than the others, if that is more than half again as long, or less than two thirds. */
export function driftOf({ earlier, latest }: Ended): number | undefined {
  if (earlier.length + latest.length < 50) return undefined;
  const median = (values: Float64Array) => values[Math.floor(values.length / 2)] ?? 0;
  const ratio = 10 ** (median(latest) - median(earlier));
  return ratio > 1.5 || ratio < 0.67 ? ratio : undefined;
}

/** Of a histogram over an axis of logarithms: where it begins and ends, and how many calls are in each part. */
export interface Histogram {
  least: number;
  most: number;
  width: number;
  bins: number[];
}

export function histogramOf({ earlier, latest }: Ended, parts: number): Histogram {
  const least = Math.min(earlier[0] ?? Infinity, latest[0] ?? Infinity);
  const most = Math.max(earlier.at(-1) ?? -Infinity, latest.at(-1) ?? -Infinity);
  const width = Math.max(1e-6, (most - least) / parts);
  const upTo = (part: number) =>
    part === parts
      ? earlier.length + latest.length
      : below(earlier, least + part * width) + below(latest, least + part * width);
  const bins = Array.from({ length: parts }, (_, part) => upTo(part + 1) - upTo(part));
  return { least, most, width, bins };
}

/** How many of the values, which are in order, are below a limit. */
function below(values: Float64Array, limit: number): number {
  let [from, to] = [0, values.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((values[middle] as number) < limit) from = middle + 1;
    else to = middle;
  }
  return from;
}
