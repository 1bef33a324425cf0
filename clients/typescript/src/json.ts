/** What is sent as JSON: only what the daemon reads as it was meant. */

/**
 * The JSON of a body. Halves of surrogate pairs, as where a text was cut, become U+FFFD. Throws a RangeError, with the place,
 * for whole numbers beyond ±(2^53 − 1) and for BigInts: such a number was rounded already, or would be when it is read. It does
 * so for NaN, infinities and invalid dates as well: JSON makes them null, which removes what it is to change.
 */
export function toJson(body: unknown): string {
  const places = new Map<unknown, string>();
  const text = JSON.stringify(body, function (this: unknown, key: string, value: unknown) {
    const around = places.get(this);
    const place = around === undefined ? '' : `${around}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`;
    if (typeof value === 'object' && value !== null) places.set(value, place);
    if (isInexact(value)) throw new RangeError(`${place}: ${value} is no number that JSON keeps; send it as a string`);
    // A date is asked for its text before, and one that is none has null.
    const lost = value === null ? (this as Record<string, unknown>)[key] : value;
    if (isNothing(lost)) throw new RangeError(`${place}: ${lost} is nothing that JSON keeps; leave it out`);
    return value;
  });
  return text?.replace(HALVES, (escape, half: string | undefined) => (half === undefined ? escape : '\ufffd'));
}

/** Escapes of JSON, and among them halves of surrogate pairs: whole pairs are not escaped. */
const HALVES = /\\(?:u(d[89a-f][0-9a-f]{2})|[^])/g;

function isNothing(value: unknown): boolean {
  if (typeof value === 'number') return !Number.isFinite(value);
  return value instanceof Date && Number.isNaN(value.getTime());
}

/** From 1e21 on numbers are written with an exponent, and read as the floats that they are. */
function isInexact(value: unknown): boolean {
  if (typeof value === 'bigint') return true;
  return Number.isInteger(value) && !Number.isSafeInteger(value) && Math.abs(value as number) < 1e21;
}
