// Step curves (memory, counters) over time: per pixel column the highest value, so no peak is ever lost.
import { FONT } from '../lanes.ts';
import { quantity } from '../text.ts';
import type { Theme } from '../theme.ts';
import type { Curve } from '../trace.ts';

export const CURVE_COLOURS = ['#56b4e9', '#b4b9c0', '#e69f00', '#35b58d', '#d487b4', '#dd6b20'];

type Box = { x: number; y: number; width: number; height: number };

/** Returns the highest value that holds within each pixel column; NaN before the first point. */
export function columnMaxima(time: Float64Array, value: ArrayLike<number>, from: number, to: number, width: number): Float64Array {
  const out = new Float64Array(Math.max(0, Math.floor(width)));
  const pixel = (to - from) / width;
  let i = firstAfter(time, from) - 1; // the point whose value holds at `from`
  for (let x = 0; x < out.length; x++) {
    const end = from + (x + 1) * pixel;
    let most = i >= 0 ? value[i] : Number.NaN;
    while (i + 1 < time.length && time[i + 1] < end) {
      i++;
      if (!(value[i] <= most)) most = value[i];
    }
    out[x] = most;
  }
  return out;
}

/** Draws a curve's series, filled, on a common scale that starts at 0. */
export function drawCurve(ctx: CanvasRenderingContext2D, curve: Curve, from: number, to: number, box: Box, look: Theme, labelled = true): void {
  const top = curve.meta.most || 1;
  const order = curve.series.map((series, index) => ({ series, index })).reverse();
  for (const { series, index } of order) {
    const maxima = columnMaxima(series.time, series.value, from, to, box.width);
    ctx.fillStyle = CURVE_COLOURS[index % CURVE_COLOURS.length];
    ctx.globalAlpha = index === 0 ? 0.95 : 0.6;
    for (let x = 0; x < maxima.length; x++) {
      const tall = Math.min(1, maxima[x] / top) * (box.height - 2);
      if (tall > 0) ctx.fillRect(box.x + x, box.y + box.height - tall, 1, tall);
    }
    ctx.globalAlpha = 1;
  }
  if (!labelled) return;
  ctx.font = FONT;
  ctx.textBaseline = 'top';
  const text = quantity(curve.meta.unit, top);
  ctx.fillStyle = look.back;
  ctx.globalAlpha = 0.75;
  ctx.fillRect(box.x + 2, box.y + 1, text.length * 6.2 + 4, 13);
  ctx.globalAlpha = 1;
  ctx.fillStyle = look.muted;
  ctx.fillText(text, box.x + 4, box.y + 2);
  ctx.textBaseline = 'middle';
}

function firstAfter(time: Float64Array, moment: number): number {
  let lo = 0;
  let hi = time.length;
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (time[mid] <= moment) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}
