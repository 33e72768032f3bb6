// What stands around the rows: labels, the scale of time, the measured stretch.
import { FONT, fitting } from '../lanes.ts';
import { duration, say } from '../text.ts';
import { ON_FILL, type Theme } from '../theme.ts';
import { LABELS, OVERVIEW, type Part, RULER } from './layout.ts';

type View = { from: number; to: number; width: number; height: number; xAt: (time: number) => number };

/** Draws the labels of a part, at the left. */
export function drawHeads(ctx: CanvasRenderingContext2D, look: Theme, part: Part, top: number, bottom: number, scroll: number): void {
  ctx.fillStyle = look.back;
  ctx.fillRect(0, top, LABELS, bottom - top);
  ctx.textBaseline = 'top';
  for (const head of part.heads) {
    const y = top + head.y - scroll;
    if (y > bottom || y + head.height < top) continue;
    if (head.kind === 'group') {
      ctx.fillStyle = look.panel;
      ctx.fillRect(0, y, LABELS, head.height);
      ctx.fillStyle = look.ink;
      ctx.font = `600 ${FONT}`;
      ctx.fillText(fitting(head.text, LABELS - 14), 10, y + 5);
      continue;
    }
    ctx.fillStyle = look.ink;
    ctx.font = FONT;
    if (head.key) drawTwist(ctx, 10, y + 8, head.folded);
    const middle = y + Math.min(head.height, 22) / 2 - 5.5;
    ctx.fillText(fitting(head.text, LABELS - 28), 22, Math.max(y, middle));
    if (head.note && head.height > 30) {
      ctx.fillStyle = look.muted;
      ctx.fillText(head.note, 22, Math.max(y, middle) + 15);
    }
  }
  ctx.fillStyle = look.line;
  ctx.fillRect(LABELS - 1, top, 1, bottom - top);
}

/** Returns a row's label that was drawn cut, at a height of its part; empty where all of it stands there. */
export function cutLabel(part: Part, y: number): string {
  const head = part.heads.find(one => y >= one.y && y < one.y + Math.max(15, one.height));
  if (!head || head.kind === 'group') return '';
  return fitting(head.text, LABELS - 28) === head.text ? '' : head.text;
}

function drawTwist(ctx: CanvasRenderingContext2D, x: number, y: number, folded: boolean): void {
  ctx.beginPath();
  if (folded) { ctx.moveTo(x, y - 4); ctx.lineTo(x + 5, y); ctx.lineTo(x, y + 4); }
  else { ctx.moveTo(x - 1, y - 2); ctx.lineTo(x + 7, y - 2); ctx.lineTo(x + 3, y + 3); }
  ctx.fill();
}

/** Draws the scale of time. */
export function drawRuler(ctx: CanvasRenderingContext2D, look: Theme, view: View, tick: number): void {
  const { from, to, width } = view;
  ctx.fillStyle = look.back;
  ctx.fillRect(0, OVERVIEW, width, RULER);
  ctx.font = FONT;
  ctx.textBaseline = 'middle';
  ctx.fillStyle = look.muted;
  for (let t = Math.ceil(from / tick) * tick; t < to; t += tick) {
    const x = view.xAt(t);
    if (x < width - 50) ctx.fillText(atTick(t, tick), x + 4, OVERVIEW + RULER / 2);
    ctx.fillRect(Math.round(x), OVERVIEW + RULER - 6, 1, 6);
  }
  ctx.fillStyle = look.back;
  ctx.fillRect(0, OVERVIEW, LABELS, RULER);
  ctx.fillStyle = look.ink;
  ctx.fillText(say('page.timeline.shown', { span_ns: to - from }), 10, OVERVIEW + RULER / 2);
  ctx.fillStyle = look.line;
  ctx.fillRect(0, OVERVIEW + RULER - 1, width, 1);
}

/** Draws a measured stretch with its length. */
export function drawMeasure(ctx: CanvasRenderingContext2D, look: Theme, view: View, span: { from: number; to: number }): void {
  const left = Math.max(LABELS, view.xAt(span.from));
  const right = Math.min(view.width, view.xAt(span.to));
  if (right < LABELS || left > view.width) return;
  ctx.fillStyle = look.dark ? 'rgba(255,211,61,.13)' : 'rgba(0,103,163,.10)';
  ctx.fillRect(left, OVERVIEW + RULER, right - left, view.height);
  ctx.fillStyle = look.dark ? '#ffd33d' : look.accent;
  ctx.fillRect(left, OVERVIEW, 1, view.height);
  ctx.fillRect(right - 1, OVERVIEW, 1, view.height);
  const text = duration(span.to - span.from);
  ctx.font = `600 ${FONT}`;
  const wide = ctx.measureText(text).width + 10;
  const x = Math.min(Math.max((left + right - wide) / 2, LABELS), view.width - wide);
  ctx.fillRect(x, OVERVIEW + 3, wide, RULER - 7);
  ctx.fillStyle = look.dark ? ON_FILL : '#fff';
  ctx.textBaseline = 'middle';
  ctx.fillText(text, x + 5, OVERVIEW + RULER / 2);
}

/** Draws a number in a disc. */
export function drawNumber(ctx: CanvasRenderingContext2D, look: Theme, number: number, x: number, y: number): void {
  ctx.fillStyle = look.ink;
  ctx.beginPath();
  ctx.arc(x, y, 7, 0, 2 * Math.PI);
  ctx.fill();
  ctx.fillStyle = look.back;
  ctx.font = `700 ${FONT}`;
  ctx.textAlign = 'center';
  ctx.textBaseline = 'middle';
  ctx.fillText(String(number), x, y + 0.5);
  ctx.textAlign = 'left';
}

/** Returns a moment spelt as finely as the distance of the ticks asks for. */
function atTick(time: number, tick: number): string {
  const [unit, size] = time >= 1e9 ? ['s', 1e9] : time >= 1e6 ? ['ms', 1e6] : time >= 1e3 ? ['µs', 1e3] : ['ns', 1];
  const digits = Math.max(0, Math.ceil(-Math.log10(tick / (size as number)) - 1e-9));
  return `${(time / (size as number)).toFixed(Math.min(digits, 9))} ${unit}`;
}
