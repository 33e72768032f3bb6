// Draws one row of events that do not overlap. Cost: pixels × log(events), whatever their number.
// An event of a pixel or more is a rectangle; a run of smaller ones becomes, pixel by pixel, a bar whose height is the
// share of that pixel's time in which something ran. So density stays true when zoomed out.

export type Events = {
  /** Start in ns from the view's origin. */
  start: Float64Array;
  dur: Float64Array | Uint32Array;
  name: ArrayLike<number>;
  /** Sum of the durations before each event, over all rows; length events + 1. */
  before: Float64Array;
};

/** A row is the events [first, last) of the columns, sorted by start. */
export type Row = { first: number; last: number };

export type Segment = { x: number; width: number; share: number; event: number };

/** Returns the first event of a row, from `low` on, that ends after a moment; gallops, so near answers come fast. */
export function firstEndingAfter(events: Events, row: Row, moment: number, low = row.first): number {
  const { start, dur } = events;
  let step = 1;
  let lo = low;
  while (lo + step < row.last && start[lo + step] + dur[lo + step] <= moment) {
    lo += step;
    step <<= 1;
  }
  let hi = Math.min(row.last, lo + step + 1);
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (start[mid] + dur[mid] <= moment) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}

/** Returns the first event of a row, from `low` on, that starts at a moment or later. */
function firstStartingAt(events: Events, row: Row, moment: number, low: number): number {
  const { start } = events;
  let step = 1;
  let lo = low;
  while (lo + step < row.last && start[lo + step] < moment) {
    lo += step;
    step <<= 1;
  }
  let hi = Math.min(row.last, lo + step + 1);
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (start[mid] < moment) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}

/**
 * Calls `emit` for each piece of a row between two moments, left to right, on a strip `width` pixels wide.
 * The sum of width × share over all pieces is the busy time in pixels, exactly.
 */
export function segments(events: Events, row: Row, from: number, to: number, width: number, emit: (piece: Segment) => void): void {
  const { start, dur, before } = events;
  const pixelNs = (to - from) / width;
  let i = firstEndingAfter(events, row, from);
  let spill = 0; // time of the last small event that reaches into the next pixel
  let spillPixel = -1;
  let spillEvent = -1;
  const flush = () => {
    if (spill > 0) emit({ x: spillPixel, width: 1, share: spill / pixelNs, event: spillEvent });
    spill = 0;
  };
  while (i < row.last && start[i] < to) {
    if (dur[i] >= pixelNs) {
      flush();
      const left = Math.max(0, (start[i] - from) / pixelNs);
      const right = Math.min(width, (start[i] + dur[i] - from) / pixelNs);
      emit({ x: left, width: right - left, share: 1, event: i });
      i++;
      continue;
    }
    const pixel = Math.max(0, Math.floor((start[i] - from) / pixelNs));
    const pixelEnd = from + (pixel + 1) * pixelNs;
    let j = firstStartingAt(events, row, pixelEnd, i);
    if (j <= i) j = i + 1;
    if (j - 1 > i && dur[j - 1] >= pixelNs) j--;
    let busy = before[j] - before[i];
    if (start[i] < from) busy -= from - start[i];
    if (spill > 0 && spillPixel === pixel) busy += spill;
    else flush();
    spill = Math.max(0, start[j - 1] + dur[j - 1] - pixelEnd);
    emit({ x: pixel, width: 1, share: (busy - spill) / pixelNs, event: longest(dur, i, j) });
    spillPixel = pixel + 1;
    spillEvent = j - 1;
    if (spillPixel >= width) spill = 0;
    i = j;
  }
  flush();
}

/** Returns the longest of the first few events of a run: its colour stands for the pixel. */
function longest(dur: ArrayLike<number>, first: number, last: number): number {
  let best = first;
  for (let i = first + 1; i < Math.min(last, first + 6); i++) if (dur[i] > dur[best]) best = i;
  return best;
}

export type Paint = {
  fill: (event: number) => string;
  label: (event: number) => string;
  /** Colour of the text on an event. */
  ink: (event: number) => string;
  dimmed?: (event: number) => boolean;
  /** Plain colour behind the text on a hatched event. */
  plate?: (event: number) => string | undefined;
};

export const FONT = '11px system-ui, -apple-system, "Segoe UI", "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", sans-serif';

/** Draws a row into a strip; returns the number of rectangles drawn. */
export function drawRow(
  ctx: CanvasRenderingContext2D, events: Events, row: Row, from: number, to: number,
  box: { x: number; y: number; width: number; height: number }, paint: Paint,
): number {
  let count = 0;
  let current = '';
  const use = (style: string) => {
    if (style !== current) ctx.fillStyle = current = style;
  };
  segments(events, row, from, to, box.width, ({ x, width, share, event }) => {
    count++;
    if (paint.dimmed?.(event)) ctx.globalAlpha = 0.18;
    use(paint.fill(event));
    const tall = share >= 1 ? box.height : Math.max(2, box.height * share);
    ctx.fillRect(box.x + x, box.y + box.height - tall, width > 3 ? width - 0.75 : width, tall);
    if (width > 26 && box.height > 9) {
      const text = fitting(paint.label(event), width - 7);
      if (text) {
        const plate = paint.plate?.(event);
        if (plate) {
          use(plate);
          ctx.fillRect(box.x + x + 1.5, box.y + 2, Math.min(width - 3, widthOf(text) + 4), box.height - 4);
        }
        use(paint.ink(event));
        ctx.fillText(text, box.x + x + 3.5, box.y + box.height / 2 + 0.5);
      }
    }
    ctx.globalAlpha = 1;
  });
  return count;
}

/** Returns about how wide a text is. */
function widthOf(text: string): number {
  let used = 0;
  for (let i = 0; i < text.length; i++) used += text.charCodeAt(i) > 0x2e7f ? 11 : 6.1;
  return used;
}

/** Returns as much of a text as fits a width, by average widths: `measureText` would cost more than the drawing. */
export function fitting(text: string, width: number): string {
  let used = 0;
  for (let i = 0; i < text.length; i++) {
    used += text.charCodeAt(i) > 0x2e7f ? 11 : 6.1;
    if (used > width) return i > 2 ? `${text.slice(0, i - 1)}…` : '';
  }
  return text;
}
