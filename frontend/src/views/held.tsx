// The memory section of the report: who held memory over time and at the peak, and how the allocator's segments lie.
import { useMemo, useState } from 'preact/hooks';
import type { Value } from '../page.ts';
import { Swatch, Tip, type TipContent, Titled } from '../parts.tsx';
import { scrollTo } from '../link.ts';
import { bytes, count, duration, say, sayOr, share } from '../text.ts';
import { binaryTick, niceTick, ticks } from '../ticks.ts';
import { CURVE_COLOURS } from '../timeline/curve.ts';
import { owners } from '../../../src/uncork/render/palette.json';
import { Grid } from './grid.tsx';
import { Section } from './section.tsx';

type Curve = { time_ns: number[] | null; action: number[] | null; allocated_bytes: number[]; reserved_bytes: number[] | null; categories: Record<string, number[]> | null };
type Held = { category: string; bytes: number; share: number; count: number; file: string | null; line: number | null; function: string | null; op: string | null };
type Segments = { shown: { bytes: number; expandable: boolean; size_bytes: number[]; state: string[] }[]; more: number; more_bytes: number; free?: number; free_bytes?: number; part?: number; part_free_bytes?: number; full?: number };
type Row = Record<string, Value>;
type Place = { file: string | null; line: number | null; function: string | null; op?: string | null };
type What = Place & { change: string; saved_low_bytes: number; saved_high_bytes: number; enough: boolean | null; count: number | null; batch_ratio: number | null };
type Failed = { requested_bytes: number; device_free_bytes: number | null; short_bytes: number | null; limited: boolean; idle_bytes: number; pieces: number; largest_bytes: number; phase: string; owner: Place };

export type MemorySection = Record<string, unknown> & {
  curve?: Curve | null; categories?: { category: string; bytes: number; share: number }[]; largest?: Held[]; kept?: Held[];
  segments?: Segments | null; what_if?: What[]; oom?: Failed | null; has_history?: boolean; peak_bytes?: number; modules?: Row[]; checkpointing?: Row[];
};

const OWN = new Set(['curve', 'categories', 'largest', 'kept', 'segments', 'what_if', 'oom', 'modules', 'checkpointing', 'rank', 'step_bytes', 'peak_ns', 'source', 'on_device', 'relative']);
const WIDTH = 1200;
const HEIGHT = 280;

export function HeldMemory({ memory }: { memory: MemorySection }) {
  const facts = Object.fromEntries(Object.entries(memory).filter(([name, value]) => !OWN.has(name) && value !== null && value !== -1).map(([name, value]) => [name, name === 'peak_phase' ? say(`memory.phase.${value}`) : value]));
  return (
    <>
      {memory.oom && <FailedRequest failed={memory.oom} what={memory.what_if ?? []} grows={memory.segments?.shown.some(one => one.expandable) ?? false} />}
      {memory.has_history === false && <section class="block"><p class="quality">{say('ui.memory.no_history')}</p></section>}
      {memory.has_history !== false && memory.curve?.allocated_bytes?.length && Object.keys(memory.curve.categories ?? {}).length ? <Stacked curve={memory.curve} /> : null}
      {memory.categories?.length ? <AtPeak categories={memory.categories} /> : null}
      {memory.largest?.length ? <Owners title={say('page.memory.largest')} held={memory.largest} id="largest" /> : null}
      {memory.kept?.length ? <Owners title={say('page.memory.kept')} held={memory.kept} id="kept" /> : null}
      {memory.what_if?.length ? <WhatIf what={memory.what_if} /> : null}
      {memory.modules?.length ? <ByModule title={say('page.memory.modules')} rows={memory.modules} id="modules" sortBy="activation_bytes" /> : null}
      {memory.checkpointing?.length ? <ByModule title={say('page.memory.checkpointing')} rows={memory.checkpointing} id="checkpointing" sortBy="peak_saved_bytes" /> : null}
      {memory.segments?.shown?.length ? <SegmentMap segments={memory.segments} /> : null}
      <Titled title={say('page.memory.figures')} />
      <Section content={facts} />
    </>
  );
}

export function categoryName(category: string): string {
  return sayOr(`memory.category.${category}`, category.replaceAll('_', ' '));
}

const OWNERS: Record<string, string> = owners;
const OWNER_ORDER = Object.keys(OWNERS);

function colourOf(category: string): string {
  return OWNERS[category] ?? CURVE_COLOURS[0];
}

function Stacked({ curve }: { curve: Curve }) {
  const [tip, setTip] = useState<TipContent | null>(null);
  const x = curve.time_ns ?? curve.action ?? curve.allocated_bytes.map((_, i) => i);
  const names = Object.keys(curve.categories ?? {}).sort((a, b) => OWNER_ORDER.indexOf(a) - OWNER_ORDER.indexOf(b));
  const { areas, line, most, peak } = useMemo(() => paths(curve, names, x), [curve]);
  const tick = binaryTick(most / 5);
  const first = x[0];
  const span = x[x.length - 1] - first || 1;
  const peakX = ((x[peak] - first) / span) * WIDTH;
  const show = (event: PointerEvent) => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    const wanted = first + ((event.clientX - box.left) / box.width) * span;
    let i = x.findIndex(value => value > wanted);
    i = Math.max(0, (i < 0 ? x.length : i) - 1);
    const lines = names.map(name => `${categoryName(name)} ${bytes(curve.categories![name][i])}`);
    if (curve.reserved_bytes) lines.push(`${say('page.series.reserved')} ${bytes(curve.reserved_bytes[i])}`);
    setTip({ title: `${curve.time_ns ? duration(x[i] - first) : `#${x[i]}`} · ${bytes(curve.allocated_bytes[i])}`, lines, x: event.clientX, y: event.clientY });
  };
  return (
    <figure>
      <figcaption>{say('page.memory.by_owner')} <span class="muted">{curve.time_ns ? say('page.memory.peak', { peak: bytes(curve.allocated_bytes[peak]), at_ns: x[peak] - first }) : `${say('page.memory.peak_here')} ${bytes(curve.allocated_bytes[peak])}; ${say('page.memory.no_times')}`}</span>{' '}<button class="small" onClick={showHolders}>{say('page.memory.at_peak')}</button></figcaption>
      <p class="legend">
        {names.map(name => <span><Swatch colour={colourOf(name)} />{categoryName(name)}</span>)}
        {line && <span><i class="swatch line" />{say('page.series.reserved')}</span>}
      </p>
      <div class="plot">
      {ticks(most, tick, false).map(value => <span class="y" style={{ top: `${100 - (value / most) * 100}%` }}>{bytes(value)}</span>)}
      <svg class="area" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={say('page.memory.by_owner')} onPointerMove={show} onPointerLeave={() => setTip(null)}>
        {areas.map((area, k) => <path d={area} fill={colourOf(names[k])} />)}
        {ticks(most, tick, false).map(value => <line class="grid" x1="0" x2={WIDTH} y1={HEIGHT - (value / most) * HEIGHT} y2={HEIGHT - (value / most) * HEIGHT} />)}
        <line class="peak" x1={peakX} x2={peakX} y1="0" y2={HEIGHT} />
        {line && <path class="reserved" d={line} />}
        <line class="grip" x1={peakX} x2={peakX} y1="0" y2={HEIGHT} onClick={showHolders} />
      </svg>
      {ticks(span, niceTick(span / (innerWidth < 560 ? 4 : 8)), false).filter(value => value < 0.985 * span).map(value => <span class="x" style={{ left: `${(value / span) * 100}%` }}>{curve.time_ns ? duration(value) : count(value)}</span>)}
      </div>
      <Tip tip={tip} />
    </figure>
  );
}

/** Goes from the peak of the curve to who held memory then. */
function showHolders(): void {
  scrollTo('at-peak');
}

/** Returns stacked step areas, the line of reserved memory, the top of the scale, and the point of the peak. */
function paths(curve: Curve, names: string[], x: number[]): { areas: string[]; line: string; most: number; peak: number } {
  const n = x.length;
  const most = Math.max(1, ...curve.allocated_bytes, ...(curve.reserved_bytes ?? []));
  const px = (i: number) => (((x[Math.min(i, n - 1)] - x[0]) / (x[n - 1] - x[0] || 1)) * WIDTH).toFixed(1);
  const py = (value: number) => (HEIGHT - (value / most) * HEIGHT).toFixed(1);
  let below = new Array<number>(n).fill(0);
  const areas = names.map(name => {
    const above = below.map((value, i) => value + (curve.categories![name][i] ?? 0));
    const up = above.map((value, i) => `L${px(i)},${py(value)}L${px(i + 1)},${py(value)}`).join('');
    const down = below.map((_, k) => n - 1 - k).map(i => `L${px(i + 1)},${py(below[i])}L${px(i)},${py(below[i])}`).join('');
    below = above;
    return `M0,${HEIGHT}${up}${down}Z`;
  });
  const line = curve.reserved_bytes ? curve.reserved_bytes.map((value, i) => `${i ? 'L' : 'M'}${px(i)},${py(value)}L${px(i + 1)},${py(value)}`).join('') : '';
  return { areas, line, most, peak: curve.allocated_bytes.indexOf(Math.max(...curve.allocated_bytes)) };
}

function AtPeak({ categories }: { categories: { category: string; bytes: number; share: number }[] }) {
  let x = 0;
  return (
    <figure id="at-peak">
      <figcaption>{say('page.memory.at_peak')}</figcaption>
      <svg class="stack" viewBox="0 0 1000 30" preserveAspectRatio="none" role="img" aria-label={categories.map(one => `${categoryName(one.category)} ${share(one.share)}`).join(', ')}>
        {categories.map(one => {
          const left = x;
          x += one.share * 1000;
          return <rect x={left} width={one.share * 1000} height="30" fill={colourOf(one.category)} />;
        })}
      </svg>
      <p class="legend">{categories.map(one => <span><Swatch colour={colourOf(one.category)} />{categoryName(one.category)} <b>{bytes(one.bytes)}</b> {share(one.share)}</span>)}</p>
    </figure>
  );
}

function Owners({ title, held, id }: { title: string; held: Held[]; id: string }) {
  const columns = ['category', 'bytes', 'share', 'count', 'place', 'op'];
  const rows = held.map((one): Value[] => [categoryName(one.category), one.bytes, one.share, one.count, placeOf(one), one.op]);
  return <Titled title={title}><Grid id={id} columns={columns} rows={rows} groups={['category']} /></Titled>;
}

function ByModule({ title, rows, id, sortBy }: { title: string; rows: Row[]; id: string; sortBy: string }) {
  const columns = Object.keys(rows[0]).filter(column => rows.some(row => row[column] !== null));
  return <Titled title={title}><Grid id={id} columns={columns} rows={rows.map(row => columns.map(column => row[column]))} sortBy={sortBy} /></Titled>;
}

function placeOf({ file, line, function: name }: Place): string | null {
  return file ? `${file}:${line ?? ''} ${name ?? ''}`.trim() : null;
}

function changeName(change: string): string {
  return sayOr(`what_if.${change}`, change.replaceAll('_', ' '));
}

function WhatIf({ what }: { what: What[] }) {
  const rows = what.map((one): Row => ({
    change: changeName(one.change), saved_low_bytes: one.saved_low_bytes, saved_high_bytes: one.saved_high_bytes, enough: one.enough,
    batch_ratio: one.batch_ratio, place: placeOf(one), calls: one.count,
  }));
  return <ByModule title={say('page.memory.what_if')} rows={rows} id="what_if" sortBy="saved_high_bytes" />;
}

/** The request that ended the program: who asked for what, what was free and how it lay, what would have been enough. */
function FailedRequest({ failed, what, grows }: { failed: Failed; what: What[]; grows: boolean }) {
  const place = [placeOf(failed.owner), failed.owner.op].filter(Boolean).join(' · ');
  const enough = what.filter(one => one.enough).map(one => changeName(one.change));
  const known = failed.device_free_bytes !== null;
  const told = [
    known ? 'failed_free' : 'failed_free_unknown', 'failed_idle',
    // Segments that grow put idle pieces and the device's together: then nobody knows what would have fitted.
    known && !grows && (failed.limited ? 'failed_fits_reserve' : 'failed_fits'),
    failed.limited ? 'failed_limit' : failed.short_bytes !== null && 'failed_short',
  ].filter(key => typeof key === 'string');
  return (
    <section class="block">
      <div class="quality">
        <h3>{say('page.memory.failed', { ...failed, phase: say(`memory.phase.${failed.phase}`) })}</h3>
        {place && <p class="places">{say('page.memory.failed_by')} <code><bdi>{place}</bdi></code></p>}
        {told.map(key => <p>{say(`page.memory.${key}`, failed)}</p>)}
        {enough.length > 0 && <p>{say('page.memory.failed_enough', { changes: enough.join(say('list.joint')) })}</p>}
        {what.length > 0 && what.every(one => one.enough === false) && <p>{say('page.memory.failed_none_enough')}</p>}
      </div>
    </section>
  );
}

const MOST_SEGMENTS = 30;

function SegmentMap({ segments }: { segments: Segments }) {
  const shown = segments.shown.slice(0, MOST_SEGMENTS);
  const widest = Math.max(...shown.map(one => one.bytes));
  const unseen = segments.shown.slice(MOST_SEGMENTS);
  const more = segments.more + unseen.length;
  const moreBytes = unseen.reduce((sum, one) => sum + one.bytes, segments.more_bytes);
  return (
    <figure>
      <figcaption>{say('page.memory.segments')}</figcaption>
      {segments.full !== undefined && <p>{say('ui.memory.segments', segments)}</p>}
      <p class="legend">
        <span><Swatch colour="#56b4e9" />{say('page.memory.in_use')}</span>
        <span><i class="swatch free" />{say('page.memory.free')}</span>
      </p>
      <svg class="segments" viewBox={`0 0 1000 ${shown.length * 8}`} preserveAspectRatio="none" style={{ height: `${shown.length * 8}px` }} role="img" aria-label={say('page.memory.segments')}>
        {shown.map((segment, row) => {
          let at = 0;
          return segment.size_bytes.map((size, k) => {
            const left = (at / widest) * 1000;
            at += size;
            return <rect x={left} y={row * 8} width={Math.max(0.6, (size / widest) * 1000 - 0.4)} height="6.5" class={segment.state[k] === 'inactive' ? 'free' : 'used'}><title>{bytes(size)}</title></rect>;
          });
        })}
      </svg>
      {more > 0 && <p class="muted">{say('page.memory.more_segments', { count: more, size: bytes(moreBytes) })}</p>}
    </figure>
  );
}
