// The flame graph on its canvas.
import { FONT, drawRow, firstEndingAfter } from '../lanes.ts';
import { isCombined, listener } from '../link.ts';
import { ON_FILL, shadeOf, theme } from '../theme.ts';
import { type Flame, type Icicle, type Tree, layOutFlame, shownName } from './layout.ts';
import { shortName } from '../text.ts';

const ROW = 18;
/** Callers that hold all of what is shown tell little: more than a few of them are drawn thin. */
const THIN = 6;
const FEW = 4;

export type FlameListener = { select: (node: number | null) => void; hover: (node: number | null, x: number, y: number) => void };

export class FlameCanvas {
  tree: Tree;
  icicle!: Icicle;
  from = 0;
  to = 1;
  scroll = 0;
  selected: number | null = null;
  hovered: number | null = null;
  found: Uint8Array | null = null;
  /** Top of each row, and the end of the last. */
  private top: number[] = [0];
  private width = 0;
  private height = 0;
  private ratio = 1;
  private frame = 0;
  private fills: string[] = [];
  private readonly ctx: CanvasRenderingContext2D;

  constructor(readonly canvas: HTMLCanvasElement, readonly flame: Flame, readonly on: FlameListener) {
    this.ctx = canvas.getContext('2d', { alpha: false })!;
    this.tree = flame.trees[0];
  }

  /** Shows a tree by a weight in an order. */
  set(tree: Tree, weight: string, heavy: boolean): void {
    if (tree !== this.tree) this.selected = null;
    this.tree = tree;
    this.icicle = layOutFlame(tree, weight, heavy);
    this.scroll = 0;
    this.restyle();
    this.zoomTo(null);
  }

  restyle(): void {
    const { meta, category } = this.flame;
    this.fills = meta.names.map((name, index) => shadeOf(meta.categories[category[index]] ?? 'unknown', name));
    this.redraw();
  }

  get whole(): number {
    return this.icicle.rows.length ? this.icicle.before[this.icicle.rows[0].last] : 1;
  }

  zoomTo(node: number | null): void {
    const at = node === null ? -1 : this.icicle.at[node];
    this.from = at < 0 ? 0 : this.icicle.start[at];
    this.to = at < 0 ? this.whole : this.from + this.icicle.dur[at];
    this.place();
    this.redraw();
  }

  /** Gives each row its place: those above the first fork of what is shown are thin, the last of them excepted. */
  private place(): void {
    const { rows, start, dur } = this.icicle;
    const trunk = rows.findIndex(row => {
      const at = firstEndingAfter(this.icicle, row, this.from);
      return at >= row.last || start[at] > this.from || start[at] + dur[at] < this.to - (this.to - this.from) * 0.01;
    });
    const thin = trunk > FEW ? trunk - 1 : 0;
    this.top = [0];
    rows.forEach((_, depth) => this.top.push(this.top[depth] + (depth < thin ? THIN : ROW)));
    this.canvas.style.height = `min(${this.end + 2}px, max(360px, 70vh))`;
    this.scrollBy(0);
  }

  private get end(): number {
    return this.top[this.top.length - 1];
  }

  select(node: number | null): void {
    this.selected = node;
    this.on.select(node);
    this.redraw();
  }

  resize(): void {
    const box = this.canvas.getBoundingClientRect();
    this.ratio = window.devicePixelRatio || 1;
    this.width = box.width;
    this.height = box.height;
    this.canvas.width = Math.round(box.width * this.ratio);
    this.canvas.height = Math.round(box.height * this.ratio);
    this.draw();
  }

  redraw(): void {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
  }

  hit(x: number, y: number): number | null {
    const row = this.icicle.rows[this.top.findIndex(top => top > y + this.scroll) - 1];
    if (!row) return null;
    const value = this.from + (x / this.width) * (this.to - this.from);
    const at = firstEndingAfter(this.icicle, row, value);
    return at < row.last && this.icicle.start[at] <= value ? this.icicle.node[at] : null;
  }

  scrollBy(delta: number): boolean {
    const before = this.scroll;
    this.scroll = Math.min(Math.max(0, this.scroll + delta), Math.max(0, this.end - this.height));
    this.redraw();
    return this.scroll !== before;
  }

  draw(): void {
    const { ctx, width, height, icicle } = this;
    if (!icicle || !width) return;
    const look = theme();
    ctx.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    ctx.fillStyle = look.back;
    ctx.fillRect(0, 0, width, height);
    ctx.font = FONT;
    ctx.textBaseline = 'middle';
    const { names } = this.flame.meta;
    const paint = {
      fill: (event: number) => this.fills[icicle.name[event]],
      label: (event: number) => shortName(shownName(names[icicle.name[event]])),
      ink: () => ON_FILL,
      dimmed: (event: number) => this.found !== null && !this.found[icicle.name[event]],
    };
    icicle.rows.forEach((row, depth) => {
      const y = this.top[depth] - this.scroll;
      const tall = this.top[depth + 1] - this.top[depth];
      if (y + tall > 0 && y < height) drawRow(ctx, icicle, row, this.from, this.to, { x: 0, y, width, height: tall - 1 }, paint);
    });
    this.outline(this.hovered, look.ink, 1);
    this.outline(this.selected, look.select, 2);
  }

  private outline(node: number | null, colour: string, line: number): void {
    const at = node === null ? -1 : this.icicle.at[node];
    if (node === null || at < 0) return;
    const scale = this.width / (this.to - this.from);
    const left = Math.max(0, (this.icicle.start[at] - this.from) * scale);
    const right = Math.min(this.width, (this.icicle.start[at] + this.icicle.dur[at] - this.from) * scale);
    if (right < 0 || left > this.width) return;
    this.ctx.strokeStyle = colour;
    this.ctx.lineWidth = line;
    const depth = this.tree.depth[node];
    this.ctx.strokeRect(left + 0.5, this.top[depth] - this.scroll + 0.5, Math.max(1, right - left - 1), this.top[depth + 1] - this.top[depth] - 2);
  }
}

/** Connects a flame graph with pointer and keys; returns what disconnects it. */
export function connectFlame(view: FlameCanvas): () => void {
  const stop = new AbortController();
  const { canvas } = view;
  const on = listener(canvas, stop.signal);
  const observer = new ResizeObserver(() => view.resize());
  observer.observe(canvas);
  on('pointermove', event => {
    const node = view.hit(event.offsetX, event.offsetY);
    view.on.hover(node, event.clientX, event.clientY);
    if (node !== view.hovered) {
      view.hovered = node;
      canvas.style.cursor = node === null ? 'default' : 'pointer';
      view.redraw();
    }
  });
  on('pointerleave', () => {
    view.hovered = null;
    view.on.hover(null, 0, 0);
    view.redraw();
  });
  on('click', event => {
    const node = view.hit(event.offsetX, event.offsetY);
    view.select(node);
    view.zoomTo(node);
  });
  on('wheel', event => {
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      const share = event.offsetX / canvas.clientWidth;
      const middle = view.from + share * (view.to - view.from);
      const factor = Math.exp(event.deltaY * 0.003);
      view.from = Math.max(0, middle - (middle - view.from) * factor);
      view.to = Math.min(view.whole, middle + (view.to - middle) * factor);
      view.redraw();
    } else if (view.scrollBy(event.deltaY)) event.preventDefault();
  });
  on('keydown', event => {
    if (isCombined(event)) return;
    if (move(view, event.key)) event.preventDefault();
  });
  return () => {
    stop.abort();
    observer.disconnect();
  };
}

function move(view: FlameCanvas, key: string): boolean {
  const { icicle, tree, selected } = view;
  if (key === 'Escape' || key === '0') {
    view.select(null);
    view.zoomTo(null);
    return true;
  }
  if (key === 'Enter' && selected !== null) {
    view.zoomTo(selected);
    return true;
  }
  if (!key.startsWith('Arrow') || !icicle.rows.length) return false;
  if (selected === null || icicle.at[selected] < 0) {
    view.select(icicle.node[0]);
    return true;
  }
  const at = icicle.at[selected];
  const row = icicle.rows[tree.depth[selected]];
  if (key === 'ArrowUp' && tree.parent[selected] >= 0) view.select(tree.parent[selected]);
  else if (key === 'ArrowLeft' && at > row.first) view.select(icicle.node[at - 1]);
  else if (key === 'ArrowRight' && at + 1 < row.last) view.select(icicle.node[at + 1]);
  else if (key === 'ArrowDown') {
    const below = icicle.rows[tree.depth[selected] + 1];
    const child = below ? firstEndingAfter(icicle, below, icicle.start[at]) : -1;
    if (below && child < below.last && tree.parent[icicle.node[child]] === selected) view.select(icicle.node[child]);
  }
  return true;
}
