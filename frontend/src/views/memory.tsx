// Memory over time, its peak, and who held it.
import { useEffect, useRef, useState } from 'preact/hooks';
import { Empty, HowToRead, SavePng, Swatch, Tip, type TipContent } from '../parts.tsx';
import { bytes, duration, quantity, say, told } from '../text.ts';
import { onPrint, theme } from '../theme.ts';
import { binaryTick, niceTick, ticks } from '../ticks.ts';
import { CURVE_COLOURS, columnMaxima, drawCurve } from '../timeline/curve.ts';
import type { Curve, Trace } from '../trace.ts';
import { HeldMemory, type MemorySection } from './held.tsx';

const LEFT = 74;
const BELOW = 22;

export function MemoryView({ trace, memory, stamp, open }: { trace: Trace | null; memory: Record<string, unknown> | null; stamp: string; open: (from: number, to: number) => void }) {
  const curves = trace?.curves.filter(curve => curve.meta.group.endsWith('memory')) ?? [];
  if (!curves.length && !memory) return <Empty>{say('page.memory.empty')}</Empty>;
  return (
    <div class="memory">
      <div class="bar"><HowToRead view="memory" /></div>
      {trace && curves.map(curve => <Chart curve={curve} span={spanOf(curve, trace.span)} stamp={stamp} open={curve.meta.group === 'memory' ? open : null} />)}
      {memory && <HeldMemory memory={memory as MemorySection} />}
    </div>
  );
}

function Chart({ curve, span, stamp, open }: { curve: Curve; span: number; stamp: string; open: ((from: number, to: number) => void) | null }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [tip, setTip] = useState<TipContent | null>(null);
  const peak = peakOf(curve);
  useEffect(() => {
    const node = canvas.current;
    if (!node) return undefined; // the view was left before it was drawn
    const draw = () => paint(node, curve, span, peak);
    draw();
    const observer = new ResizeObserver(draw);
    observer.observe(node);
    const unprint = onPrint(draw);
    return () => {
      unprint();
      observer.disconnect();
    };
  }, [curve, stamp]);
  const at = (x: number) => ((x - LEFT) / (canvas.current!.clientWidth - LEFT)) * span;
  return (
    <figure>
      <figcaption>
        {told(curve.meta.label)}
        {peak && <span class="muted"> {say('page.memory.peak', { peak: quantity(curve.meta.unit, peak.value), at_ns: peak.time })}</span>}{' '}
        {peak && open && <button class="small" onClick={() => open(Math.max(0, peak.time - span / 40), Math.min(span, peak.time + span / 40))}>{say('page.in_timeline')}</button>}{' '}
        <SavePng canvas={() => canvas.current} name="memory" />
      </figcaption>
      <p class="legend">{curve.series.map((series, index) => <span><Swatch colour={CURVE_COLOURS[index % CURVE_COLOURS.length]} />{say(series.label)}</span>)}</p>
      <canvas
        ref={canvas} class="chart" role="img" aria-label={`${told(curve.meta.label)} ${peak ? say('page.memory.peak', { peak: quantity(curve.meta.unit, peak.value), at_ns: peak.time }) : ''}`}
        onClick={event => open?.(Math.max(0, at(event.offsetX) - span / 40), Math.min(span, at(event.offsetX) + span / 40))}
        onPointerMove={event => {
          const time = at(event.offsetX);
          if (time < 0) return setTip(null);
          const lines = curve.series.map(series => `${say(series.label)} ${spell(curve, valueAt(series, time))}`);
          return setTip({ title: duration(time), lines, x: event.clientX, y: event.clientY });
        }}
        onPointerLeave={() => setTip(null)}
      />
      <Tip tip={tip} />
    </figure>
  );
}

/** The recorder's deep window has a time of its own. */
function spanOf(curve: Curve, span: number): number {
  return curve.meta.group === 'memory' ? span : Math.max(1, ...curve.series.map(series => series.time[series.time.length - 1] ?? 0));
}

function spell(curve: Curve, value: number): string {
  return Number.isNaN(value) ? '–' : quantity(curve.meta.unit, value);
}

function valueAt(series: Curve['series'][number], time: number): number {
  return columnMaxima(series.time, series.value, time, time + 1, 1)[0];
}

function peakOf(curve: Curve): { time: number; value: number } | null {
  const [series] = curve.series;
  if (!series?.time.length) return null;
  let best = 0;
  for (let i = 1; i < series.time.length; i++) if (series.value[i] > series.value[best]) best = i;
  return { time: series.time[best], value: series.value[best] };
}

function paint(canvas: HTMLCanvasElement, curve: Curve, span: number, peak: { time: number; value: number } | null): void {
  const look = theme();
  const ratio = window.devicePixelRatio || 1;
  const { clientWidth: width, clientHeight: height } = canvas;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const ctx = canvas.getContext('2d');
  if (!ctx || width < LEFT) return;
  ctx.scale(ratio, ratio);
  ctx.fillStyle = look.back;
  ctx.fillRect(0, 0, width, height);
  const tall = height - BELOW;
  const isBytes = curve.meta.unit.endsWith('bytes');
  const tick = isBytes ? binaryTick(curve.meta.most / 4) : curve.meta.most / 4;
  ctx.font = '11px system-ui, sans-serif';
  ctx.textBaseline = 'middle';
  const top = Math.ceil(curve.meta.most / tick) * tick;
  drawCurve(ctx, { ...curve, meta: { ...curve.meta, most: top } }, 0, span, { x: LEFT, y: 0, width: width - LEFT, height: tall }, look, false);
  for (let value = 0; value <= top + tick / 2; value += tick) {
    const y = tall - (value / top) * (tall - 2);
    ctx.globalAlpha = 0.5;
    ctx.fillStyle = look.line;
    ctx.fillRect(LEFT, Math.round(y), width - LEFT, 1);
    ctx.globalAlpha = 1;
    ctx.fillStyle = look.muted;
    ctx.textAlign = 'right';
    ctx.fillText(isBytes ? bytes(value) : quantity(curve.meta.unit, value), LEFT - 8, Math.min(Math.max(y, 7), tall - 2));
  }
  for (const time of ticks(span, niceTick(span / Math.min(8, (width - LEFT) / 70)), false)) {
    const x = LEFT + (time / span) * (width - LEFT);
    if (x > width - 20) continue;
    ctx.textAlign = time ? 'center' : 'left';
    ctx.fillText(duration(time), x, height - 8);
  }
  ctx.textAlign = 'left';
  if (peak) {
    const x = LEFT + (peak.time / span) * (width - LEFT);
    ctx.strokeStyle = look.ink;
    ctx.setLineDash([3, 3]);
    ctx.beginPath();
    ctx.moveTo(x, 0);
    ctx.lineTo(x, tall);
    ctx.stroke();
    ctx.setLineDash([]);
  }
}
