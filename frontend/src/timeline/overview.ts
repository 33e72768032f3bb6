// The strip above the timeline: per pixel, what the time went to (causes of the ledger), else how busy the device was.
import { segments } from '../lanes.ts';
import { type Theme, fillOf } from '../theme.ts';
import type { Trace } from '../trace.ts';

/** Returns the strip as an image. */
export function drawOverview(trace: Trace, width: number, height: number, look: Theme): HTMLCanvasElement {
  const image = document.createElement('canvas');
  image.width = width;
  image.height = height;
  const ctx = image.getContext('2d');
  if (!ctx || width < 1) return image;
  ctx.fillStyle = look.panel;
  ctx.fillRect(0, 0, width, height);
  const wanted = trace.tracks.some(track => track.meta.role === 'cause') ? 'cause'
    : trace.tracks.some(track => track.meta.role === 'device') ? 'device' : 'host';
  const categories = trace.meta.categories.length;
  const filled = new Float32Array(width * categories);
  for (const track of trace.tracks) {
    if (track.meta.role !== wanted) continue;
    const rows = wanted === 'host' ? track.rows.slice(0, 1) : track.rows;
    for (const row of rows) {
      segments(trace, row, 0, trace.span, width, ({ x, width: wide, share, event }) => {
        const category = trace.category[trace.name[event]];
        for (let pixel = Math.floor(x); pixel < Math.min(width, x + wide); pixel++) {
          const covered = wide <= 1 ? share : Math.min(pixel + 1, x + wide) - Math.max(pixel, x);
          filled[pixel * categories + category] += covered;
        }
      });
    }
  }
  for (let pixel = 0; pixel < width; pixel++) {
    let y = height;
    for (let category = 0; category < categories; category++) {
      const tall = Math.min(filled[pixel * categories + category], 1) * height;
      if (tall <= 0) continue;
      ctx.fillStyle = fillOf(trace.meta.categories[category]);
      ctx.fillRect(pixel, y - tall, 1, tall);
      y -= tall;
    }
  }
  return image;
}
