/** Calls of the last hour as bars, drawn as SVG: it needs no library and scales with the page. */

import type { MinuteOfCalls } from './api.js';
import { count } from './format.js';

const WIDTH = 600;
const HEIGHT = 90;
const MINUTES = 60;

export function Minutes({ minutes, label }: { minutes: readonly MinuteOfCalls[]; label: string }) {
  const most = Math.max(1, ...minutes.map((minute) => minute.calls));
  const now = Math.floor(Date.now() / 60_000);
  const width = WIDTH / MINUTES;
  const height = (value: number) => (value / most) * (HEIGHT - 4);
  return (
    <figure class="minutes">
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={label}>
        {minutes.map((minute) => {
          const x = WIDTH - (now - Math.floor(Date.parse(minute.at) / 60_000) + 1) * width;
          const bad = minute.errors + minute.timeouts;
          return (
            <g key={minute.at}>
              <rect
                class="calls"
                x={x + 1}
                width={width - 2}
                y={HEIGHT - height(minute.calls)}
                height={height(minute.calls)}
              >
                <title>{`${minute.at}: ${minute.calls} calls, ${minute.errors} failed, ${minute.timeouts} timed out`}</title>
              </rect>
              {bad > 0 && (
                <rect class="failed" x={x + 1} width={width - 2} y={HEIGHT - height(bad)} height={height(bad)} />
              )}
            </g>
          );
        })}
        <line class="axis" x1="0" x2={WIDTH} y1={HEIGHT} y2={HEIGHT} />
      </svg>
      <figcaption>
        <span>an hour ago</span>
        <span>
          <span class="key calls" aria-hidden="true" /> calls <span class="key failed" aria-hidden="true" /> failed or
          timed out; at most {count(most)} a minute
        </span>
        <span>now</span>
      </figcaption>
    </figure>
  );
}
