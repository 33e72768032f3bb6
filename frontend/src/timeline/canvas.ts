// The timeline on its canvas: the view, what is selected, and how it is drawn. Input lives in input.ts.
import { type Paint, FONT, drawRow, firstEndingAfter, fitting } from '../lanes.ts';
import { say, shortName, told } from '../text.ts';
import { IDLE, ON_FILL, type Theme, fillOf, hatch, shadeOf, theme } from '../theme.ts';
import { type Trace, launchOf, launchedBy, placeOf } from '../trace.ts';
import { drawCurve } from './curve.ts';
import { LABELS, type Lane, type Layout, type Marks, OVERVIEW, type Part, RULER, fitLabels, foldedAtFirst, layOut } from './layout.ts';
import { cutLabel, drawHeads, drawMeasure, drawNumber, drawRuler } from './furniture.ts';
import { drawOverview } from './overview.ts';

export type Span = { from: number; to: number };
export type Hit = { event: number } | { finding: number; from: number; to: number } | { label: string };
export type Listener = {
  select: (event: number | null) => void;
  hover: (hit: Hit | null, x: number, y: number) => void;
  moved: () => void;
  measured: (span: Span | null) => void;
  finding: (index: number, bring: boolean) => void;
};

const SHORTEST_VIEW_NS = 40;
const MOST_ARROWS = 60;

export class TimelineCanvas {
  from = 0;
  to: number;
  scroll = 0;
  width = 0;
  height = 0;
  selected: number | null = null;
  hovered: number | null = null;
  measure: Span | null = null;
  /** Names that the search found; null while nothing is searched. */
  found: Uint8Array | null = null;
  layout: Layout;
  readonly folded: Set<string>;
  rectangles = 0;
  lastDrawMs = 0;
  private readonly ctx: CanvasRenderingContext2D;
  private look: Theme = theme();
  private paint!: Paint;
  private markPaint!: Paint;
  private overview: HTMLCanvasElement | null = null;
  private frame = 0;
  private ratio = 1;

  constructor(
    readonly canvas: HTMLCanvasElement, readonly trace: Trace, readonly marks: Marks | null, readonly on: Listener,
  ) {
    this.ctx = canvas.getContext('2d', { alpha: false })!;
    this.to = trace.span;
    this.folded = foldedAtFirst(trace);
    this.layout = layOut(trace, marks, this.folded);
    this.showAnalysed();
    this.restyle();
  }

  /** Begins with the time that the verdict is about, where a recording has long ends beside it. */
  private showAnalysed(): void {
    const causes = this.trace.tracks.find(track => track.meta.role === 'cause');
    if (!causes || causes.last <= causes.first) return;
    const from = this.trace.start[causes.first];
    const to = this.trace.start[causes.last - 1] + this.trace.dur[causes.last - 1];
    const margin = (to - from) * 0.01;
    this.from = Math.max(0, from - margin);
    this.to = Math.min(this.trace.span, to + margin);
  }

  /** Makes the canvas as high as its rows, up to what the style allows. */
  private fitHeight(): void {
    const rows = OVERVIEW + RULER + this.layout.pinned.height + this.layout.scrolled.height + 8;
    this.canvas.style.height = `min(${rows}px, max(360px, 64vh))`;
  }

  /** Takes on the theme and the language that are on now. */
  restyle(): void {
    const { trace, marks } = this;
    this.look = theme();
    const idleCauses = trace.tracks.find(track => track.meta.role === 'cause');
    const category = (name: number) => trace.meta.categories[trace.category[name]] ?? 'unknown';
    const fills = trace.meta.names.map((name, index) => shadeOf(category(index), name));
    const hatched = new Map<number, CanvasPattern | string>();
    if (idleCauses) {
      for (const row of idleCauses.rows) {
        for (let i = row.first; i < row.last; i++) {
          const name = trace.name[i];
          if (IDLE.has(category(name)) && !hatched.has(name)) hatched.set(name, hatch(this.ctx, fillOf(category(name)), this.look.idle));
        }
      }
    }
    const labels = trace.meta.names.map(name => (name.startsWith('cause.') || name.startsWith('page.') ? say(name) : shortName(name)));
    this.paint = {
      fill: event => (hatched.get(trace.name[event]) as string) ?? fills[trace.name[event]],
      label: event => labels[trace.name[event]],
      ink: () => ON_FILL,
      plate: event => (hatched.has(trace.name[event]) ? fills[trace.name[event]] : undefined),
      dimmed: event => this.found !== null && !this.found[trace.name[event]],
    };
    this.markPaint = { fill: () => (this.look.dark ? '#ff9a5c' : '#c2410c'), label: event => String(marks!.name[event]), ink: () => (this.look.dark ? ON_FILL : '#fff') };
    this.layout = layOut(trace, marks, this.folded);
    this.fitHeight();
    this.overview = null;
    this.redraw();
  }

  label(event: number): string {
    return this.paint.label(event);
  }

  resize(): void {
    const box = this.canvas.getBoundingClientRect();
    if (box.width < 200) return;
    this.ratio = window.devicePixelRatio || 1;
    fitLabels(box.width);
    this.width = box.width;
    this.height = box.height;
    this.canvas.width = Math.round(box.width * this.ratio);
    this.canvas.height = Math.round(box.height * this.ratio);
    this.overview = null;
    this.scrollTo(this.scroll);
    this.draw();
  }

  redraw(): void {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
  }

  get top(): number {
    return OVERVIEW + RULER + this.layout.pinned.height;
  }

  get plot(): number {
    return this.width - LABELS;
  }

  timeAt(x: number): number {
    return this.from + ((x - LABELS) / this.plot) * (this.to - this.from);
  }

  xAt(time: number): number {
    return LABELS + ((time - this.from) / (this.to - this.from)) * this.plot;
  }

  /** Shows a stretch of time, kept inside the recording and not below the shortest view. */
  show(from: number, to: number): void {
    const span = Math.min(Math.max(to - from, SHORTEST_VIEW_NS), this.trace.span);
    const middle = (from + to) / 2;
    this.from = Math.min(Math.max(0, middle - span / 2), this.trace.span - span);
    this.to = this.from + span;
    this.on.moved();
    this.redraw();
  }

  zoom(factor: number, x: number): void {
    const time = this.timeAt(Math.max(LABELS, x));
    this.show(time - (time - this.from) * factor, time + (this.to - time) * factor);
  }

  pan(part: number): void {
    const shift = (this.to - this.from) * part;
    const kept = Math.min(Math.max(shift, -this.from), this.trace.span - this.to);
    this.show(this.from + kept, this.to + kept);
  }

  scrollTo(y: number): boolean {
    const most = Math.max(0, this.layout.scrolled.height - (this.height - this.top) + 12);
    const before = this.scroll;
    this.scroll = Math.min(Math.max(0, y), most);
    this.redraw();
    return this.scroll !== before;
  }

  fold(key: string): void {
    if (!this.folded.delete(key)) this.folded.add(key);
    this.layout = layOut(this.trace, this.marks, this.folded);
    this.fitHeight();
    this.scrollTo(this.scroll);
  }

  /** Selects an event; with `bring`, moves the view so that it can be seen. */
  select(event: number | null, bring = false): void {
    this.selected = event;
    if (event !== null && bring) this.bring(event);
    this.on.select(event);
    this.redraw();
  }

  private bring(event: number): void {
    const { start, dur } = this.trace;
    const span = this.to - this.from;
    const end = start[event] + dur[event];
    if (start[event] < this.from || end > this.to || dur[event] < span / 400) {
      const wide = Math.max(dur[event] * 6, Math.min(span, dur[event] * 200 + 1000));
      const middle = start[event] + dur[event] / 2;
      this.show(middle - wide / 2, middle + wide / 2);
    }
    const place = placeOf(this.trace, event);
    const lane = place && this.layout.scrolled.lanes.find(one => this.trace.tracks[one.track] === place.track && one.depth === place.depth);
    if (lane && (lane.y < this.scroll || lane.y + lane.height > this.scroll + this.height - this.top)) this.scrollTo(lane.y - 80);
  }

  /** Returns what stands at a point. */
  hit(x: number, y: number): Hit | null {
    const [part, inside] = this.partAt(y);
    const lane = this.laneAt(y);
    if (lane?.marks && x < LABELS) return this.longestMark(lane);
    const label = x < LABELS && cutLabel(part, inside);
    if (label) return { label };
    if (!lane || x < LABELS) return null;
    const pixel = (this.to - this.from) / this.plot;
    const time = this.timeAt(x);
    const event = firstEndingAfter(lane.events, lane.row, time - pixel);
    if (event >= lane.row.last || lane.events.start[event] > time + pixel) return null;
    if (lane.marks) {
      const from = lane.events.start[event];
      return { finding: this.marks!.findings[lane.depth], from, to: from + lane.events.dur[event] };
    }
    return { event };
  }

  /** Returns the longest stretch of a finding: what its label stands for. */
  private longestMark({ row, events, depth }: Lane): Hit {
    let longest = row.first;
    for (let i = row.first; i < row.last; i++) if (events.dur[i] > events.dur[longest]) longest = i;
    const from = events.start[longest];
    return { finding: this.marks!.findings[depth], from, to: from + events.dur[longest] };
  }

  /** Returns the part at a height of the canvas, and how far down in it that is. */
  private partAt(y: number): [Part, number] {
    return y < this.top ? [this.layout.pinned, y - OVERVIEW - RULER] : [this.layout.scrolled, y - this.top + this.scroll];
  }

  laneAt(y: number): Lane | undefined {
    const [part, inside] = this.partAt(y);
    return part.lanes.find(lane => inside >= lane.y && inside < lane.y + lane.height);
  }

  draw(): void {
    const began = performance.now();
    const { ctx, width, height, look } = this;
    ctx.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    ctx.fillStyle = look.back;
    ctx.fillRect(0, 0, width, height);
    const tick = this.tick();
    this.rectangles = 0;
    this.drawPart(this.layout.scrolled, this.top, height, this.scroll, tick);
    this.drawPart(this.layout.pinned, OVERVIEW + RULER, this.top, 0, tick);
    ctx.fillStyle = look.line;
    ctx.fillRect(0, this.top - 1, width, 1);
    this.drawArrows();
    this.drawLongest();
    this.outline(this.hovered, look.ink, 1);
    this.outline(this.selected, look.select, 2);
    drawRuler(ctx, look, this, tick);
    if (this.measure) drawMeasure(ctx, look, this, this.measure);
    this.drawOverviewStrip();
    this.lastDrawMs = performance.now() - began;
  }

  private tick(): number {
    const rough = ((this.to - this.from) * 110) / this.plot;
    const power = 10 ** Math.floor(Math.log10(rough));
    return power * ([1, 2, 5, 10].find(step => step * power >= rough) ?? 10);
  }

  private drawPart(part: Part, top: number, bottom: number, scroll: number, tick: number): void {
    const { ctx, look, from, to, plot } = this;
    ctx.save();
    ctx.beginPath();
    ctx.rect(0, top, this.width, bottom - top);
    ctx.clip();
    for (const head of part.heads) {
      if (head.kind === 'group') {
        ctx.fillStyle = look.panel;
        ctx.fillRect(0, top + head.y - scroll, this.width, head.height);
      }
    }
    ctx.fillStyle = look.line;
    for (let t = Math.ceil(from / tick) * tick; t < to; t += tick) ctx.fillRect(Math.round(this.xAt(t)), top, 1, bottom - top);
    ctx.font = FONT;
    ctx.textBaseline = 'middle';
    for (const lane of part.lanes) {
      const y = top + lane.y - scroll;
      if (y + lane.height < top || y > bottom) continue;
      const box = { x: LABELS, y, width: plot, height: lane.height - 1 };
      this.rectangles += drawRow(ctx, lane.events, lane.row, from, to, box, lane.marks ? this.markPaint : this.paint);
    }
    for (const lane of part.curves) {
      const y = top + lane.y - scroll;
      if (y + lane.height >= top && y <= bottom) drawCurve(ctx, lane.curve, from, to, { x: LABELS, y, width: plot, height: lane.height }, look);
    }
    drawHeads(ctx, look, part, top, bottom, scroll);
    ctx.restore();
  }

  /** Returns the box of an event on screen, or null where its row is folded away or out of view. */
  private box(event: number): { x: number; y: number; width: number; height: number } | null {
    const place = placeOf(this.trace, event);
    if (!place) return null;
    for (const [part, top, scroll] of [[this.layout.pinned, OVERVIEW + RULER, 0], [this.layout.scrolled, this.top, this.scroll]] as const) {
      const lane = part.lanes.find(one => !one.marks && this.trace.tracks[one.track] === place.track && one.depth === place.depth);
      if (!lane) continue;
      const left = this.xAt(this.trace.start[event]);
      const right = this.xAt(this.trace.start[event] + this.trace.dur[event]);
      const x = Math.max(LABELS, left);
      return { x, y: top + lane.y - scroll, width: Math.max(2, Math.min(this.width, right) - x), height: lane.height };
    }
    return null;
  }

  private within(box: { x: number; y: number; height: number }): boolean {
    return box.y + box.height > OVERVIEW + RULER && box.y < this.height && box.x <= this.width;
  }

  private outline(event: number | null, colour: string, line: number): void {
    const box = event === null ? null : this.box(event);
    if (event === null || !box || !this.within(box)) return;
    if (this.trace.start[event] > this.to || this.trace.start[event] + this.trace.dur[event] < this.from) return;
    this.ctx.strokeStyle = colour;
    this.ctx.lineWidth = line;
    this.ctx.strokeRect(box.x - 0.5, box.y - 0.5, box.width, box.height);
  }

  private drawArrows(): void {
    const { trace, selected } = this;
    if (selected === null) return;
    const from = launchOf(trace, selected);
    const pairs = from >= 0 ? [[from, selected]] : launchedBy(trace, selected).slice(0, MOST_ARROWS).map(to => [selected, to]);
    for (const [host, device] of pairs) this.arrow(host, device);
  }

  private arrow(host: number, device: number): void {
    const start = this.box(host);
    const end = this.box(device);
    if (!start || !end) return;
    const { ctx, look } = this;
    const fromX = this.xAt(this.trace.start[host] + this.trace.dur[host] / 2);
    const toX = this.xAt(this.trace.start[device]);
    const fromY = start.y + (start.y < end.y ? start.height : 0);
    const toY = end.y + (start.y < end.y ? 0 : end.height);
    const bend = (toY - fromY) * 0.5;
    ctx.save();
    ctx.beginPath();
    ctx.rect(LABELS, OVERVIEW + RULER, this.plot, this.height);
    ctx.clip();
    ctx.strokeStyle = ctx.fillStyle = look.select;
    ctx.lineWidth = 1.4;
    ctx.beginPath();
    ctx.moveTo(fromX, fromY);
    ctx.bezierCurveTo(fromX, fromY + bend, toX, toY - bend, toX, toY);
    ctx.stroke();
    const tip = Math.sign(toY - fromY) * 6;
    ctx.beginPath();
    ctx.moveTo(toX, toY);
    ctx.lineTo(toX - 3.5, toY - tip);
    ctx.lineTo(toX + 3.5, toY - tip);
    ctx.fill();
    ctx.restore();
    this.outline(host === this.selected ? device : host, look.select, 1.5);
  }

  /** Numbers the three longest operations. */
  private drawLongest(): void {
    const { trace } = this;
    trace.meta.longest.forEach((event, index) => {
      const box = this.box(event);
      if (!box || trace.start[event] > this.to || trace.start[event] + trace.dur[event] < this.from) return;
      if (box.y < this.top - 2 || box.y > this.height) return;
      const x = Math.min(Math.max(box.x + box.width / 2, LABELS + 8), this.width - 8);
      drawNumber(this.ctx, this.look, index + 1, x, box.y + 1);
    });
  }

  private drawOverviewStrip(): void {
    const { ctx, look, plot, width } = this;
    this.overview ??= drawOverview(this.trace, Math.round(plot * this.ratio), Math.round(OVERVIEW * this.ratio), look);
    ctx.fillStyle = look.back;
    ctx.fillRect(0, 0, LABELS, OVERVIEW);
    ctx.drawImage(this.overview, LABELS, 0, plot, OVERVIEW);
    const at = (time: number) => LABELS + (time / this.trace.span) * plot;
    ctx.fillStyle = look.shade;
    ctx.fillRect(LABELS, 0, at(this.from) - LABELS, OVERVIEW);
    ctx.fillRect(at(this.to), 0, width - at(this.to), OVERVIEW);
    ctx.strokeStyle = look.ink;
    ctx.lineWidth = 1;
    ctx.strokeRect(at(this.from) + 0.5, 0.5, Math.max(3, at(this.to) - at(this.from)) - 1, OVERVIEW - 1);
    ctx.fillStyle = look.muted;
    ctx.font = FONT;
    ctx.textBaseline = 'middle';
    ctx.fillText(fitting(say('page.timeline.overview'), LABELS - 12), 10, OVERVIEW / 2 - 7);
    ctx.fillText(fitting(told({ id: 'page.timeline.whole', params: { span_ns: this.trace.span } }), LABELS - 12), 10, OVERVIEW / 2 + 9);
  }
}
