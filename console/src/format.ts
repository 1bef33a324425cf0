/** Numbers and moments for people. */

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const precise = new Intl.NumberFormat('en', { maximumFractionDigits: 4 });

export function count(value: number): string {
  return whole.format(value);
}

/** `1 tool`, `2 tools`. */
export function many(value: number, one: string, several = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : several}`;
}

export function share(value: number): string {
  return `${Math.round(value * 100)} %`;
}

export function dollars(value: number): string {
  return `$${precise.format(value)}`;
}

/** A duration in ms, to two or three digits. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  const minutes = seconds / 60;
  if (minutes < 60) return `${Math.floor(minutes)} min ${Math.round(seconds % 60)} s`;
  const hours = minutes / 60;
  if (hours < 48) return `${Math.floor(hours)} h ${Math.round(minutes % 60)} min`;
  return `${Math.floor(hours / 24)} d ${Math.round(hours % 24)} h`;
}

/** How long ago something was, in ms: one whole number and its unit, which moves seldom. */
export function age(ms: number): string {
  const seconds = Math.max(0, ms / 1000);
  if (seconds < 120) return `${Math.floor(seconds)} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
}

/** Bytes, to two or three digits. */
export function bytes(value: number): string {
  const units = ['bytes', 'kB', 'MB', 'GB'];
  const power = value < 1000 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(value) / 3));
  const scaled = value / 1000 ** power;
  return `${power > 0 && scaled < 10 ? scaled.toFixed(1) : Math.round(scaled)} ${units[power] ?? ''}`;
}

/** A moment: the time of today, the day as well of any other. */
export function moment(text: string): string {
  const at = new Date(text);
  if (Number.isNaN(at.getTime())) return text;
  const pad = (value: number) => String(value).padStart(2, '0');
  const time = `${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}`;
  if (at.toDateString() === new Date().toDateString()) return time;
  return `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())} ${time}`;
}

/** `execution_recorded` as `execution recorded`. */
export function words(name: string): string {
  return name.replaceAll('_', ' ');
}

/** A sentence's beginning. */
export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** A mode as people read it; `#error` marks the calls that failed, which are learnt apart. */
export function modeName(mode: string): string {
  const [name = '', failed] = mode.split('#');
  return [name === '' ? 'any mode' : name, failed === undefined ? '' : ', failed calls'].join('');
}

/** A duration in ms for an axis: one number and one unit. */
export function briefly(ms: number): string {
  const [value, unit] =
    ms < 1000
      ? [ms, 'ms']
      : ms < 120_000
        ? [ms / 1000, 's']
        : ms < 7_200_000
          ? [ms / 60_000, 'min']
          : [ms / 3_600_000, 'h'];
  return `${Number(value.toPrecision(2))} ${unit}`;
}
