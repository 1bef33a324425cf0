/** What was forecast, by columns of pixels: of calls that fall together the outermost of each level. */

import type { Points } from './points.js';

/** Where the plot is on the canvas, and what of the data its corner is: seconds and logarithms by pixels. */
export interface Frame {
  left: number;
  top: number;
  from: number;
  high: number;
  across: number;
  up: number;
}

/** In ms, of each column the greatest or the least. */
export interface Columns {
  x: Float64Array;
  p95: Float64Array;
  p75: Float64Array;
  /** The greatest and the least of the middle. */
  most: Float64Array;
  least: Float64Array;
  p25: Float64Array;
  p05: Float64Array;
  /** Behind which columns a stretch ends, before and after which nothing was said. */
  ends: number[];
}

/** In plain steps: this runs before it is compiled. */
export function columnsOf(points: Points, { left, from, across }: Frame): Columns {
  const { at } = points;
  const column = () => new Float64Array(at.length);
  const found: Columns = {
    x: column(),
    p95: column(),
    p75: column(),
    most: column(),
    least: column(),
    p25: column(),
    p05: column(),
    ends: [],
  };
  let count = 0;
  let last = NaN;
  for (let index = 0; index < at.length; index += 1) {
    const middle = points.p50[index] as number;
    if (Number.isNaN(middle)) {
      if (count > (found.ends.at(-1) ?? 0)) found.ends.push(count);
      last = NaN;
      continue;
    }
    const x = Math.round(left + ((at[index] as number) - from) * across);
    if (x === last) {
      widen(found, count - 1, points, index);
    } else {
      begin(found, count, points, index);
      found.x[count] = last = x;
      count += 1;
    }
  }
  if (count > (found.ends.at(-1) ?? 0)) found.ends.push(count);
  return found;
}

function begin(found: Columns, column: number, points: Points, index: number): void {
  found.p95[column] = points.p95[index] as number;
  found.p75[column] = points.p75[index] as number;
  found.most[column] = found.least[column] = points.p50[index] as number;
  found.p25[column] = points.p25[index] as number;
  found.p05[column] = points.p05[index] as number;
}

function widen(found: Columns, column: number, points: Points, index: number): void {
  raise(found.p95, column, points.p95[index] as number);
  raise(found.p75, column, points.p75[index] as number);
  raise(found.most, column, points.p50[index] as number);
  lower(found.least, column, points.p50[index] as number);
  lower(found.p25, column, points.p25[index] as number);
  lower(found.p05, column, points.p05[index] as number);
}

function raise(values: Float64Array, column: number, value: number): void {
  if (value > (values[column] as number)) values[column] = value;
}

function lower(values: Float64Array, column: number, value: number): void {
  if (value < (values[column] as number)) values[column] = value;
}
