// The timeline's data as the page uses it: rows over whole columns, names, links between launches and device work.
import type { Block, Column } from './decode.ts';
import type { Events, Row } from './lanes.ts';
import type { Message } from './text.ts';

export type Role = 'finding' | 'step' | 'cause' | 'device' | 'host' | 'loader' | 'curve';

export type Detail = { module: string; place: string; shapes: string; note: string };

export type TrackMeta = { group: string; role: Role; label: Message; rows: number[]; main?: boolean };

export type CurveMeta = { group: string; label: Message; unit: string; series: { label: string; time: string; value: string }[]; most: number };

export type TimelineMeta = {
  origin_ns: string;
  span_ns: number;
  tracks: TrackMeta[];
  curves: CurveMeta[];
  names: string[];
  categories: string[];
  texts: string[];
  longest: number[];
  patterns: { message: Message; from_ns: number; to_ns: number }[];
  left_out: Message[];
  /** The stretch of time of which nothing is left out. */
  whole_ns: [number, number];
};

export type Track = { meta: TrackMeta; rows: Row[]; first: number; last: number };

export type Curve = { meta: CurveMeta; series: { label: string; time: Float64Array; value: ArrayLike<number> }[] };

export type Trace = Events & {
  meta: TimelineMeta;
  span: number;
  tracks: Track[];
  curves: Curve[];
  detailOf: (event: number) => Detail;
  /** Category of each name, index in meta.categories. */
  category: ArrayLike<number>;
  /** Device events by the host event that launched them, and back; ascending in `to`. */
  linkFrom: Float64Array;
  linkTo: Float64Array;
  /** The same pairs in ascending order of `from`: indices into linkFrom. */
  byFrom: Uint32Array;
};

/** Returns the trace in a block; undoes the gaps. */
export function readTrace({ meta, columns }: Block<TimelineMeta>): Trace {
  const gap = columns.gap;
  const n = gap.length;
  const dur = columns.dur as Float64Array | Uint32Array;
  const start = new Float64Array(n);
  const before = new Float64Array(n + 1);
  const tracks: Track[] = [];
  let i = 0;
  for (const track of meta.tracks) {
    const first = i;
    const rows: Row[] = track.rows.map(count => {
      const row = { first: i, last: i + count };
      let end = 0;
      for (; i < row.last; i++) {
        start[i] = end + gap[i];
        end = start[i] + dur[i];
        before[i + 1] = before[i] + dur[i];
      }
      return row;
    });
    tracks.push({ meta: track, rows, first, last: i });
  }
  const linkFrom = columns.link_from as Float64Array;
  const byFrom = Uint32Array.from(linkFrom.keys()).sort((a, b) => linkFrom[a] - linkFrom[b]);
  const curves = meta.curves.map(curve => ({
    meta: curve,
    series: curve.series.map(s => ({ label: s.label, time: columns[s.time] as Float64Array, value: columns[s.value] })),
  }));
  return {
    meta, span: meta.span_ns, tracks, curves, start, dur, before, name: columns.name, detailOf: detailReader(meta.texts, columns),
    category: columns.category, linkFrom, linkTo: columns.link_to as Float64Array, byFrom,
  };
}

function detailReader(texts: string[], columns: Record<string, Column>): (event: number) => Detail {
  const text = (field: string, detail: number) => texts[columns[`detail_${field}`][detail]] ?? '';
  return event => {
    const detail = columns.detail[event];
    return { module: text('module', detail), place: text('place', detail), shapes: text('shapes', detail), note: text('note', detail) };
  };
}

/** Returns the track and the row (within it) that hold an event. */
export function placeOf(trace: Trace, event: number): { track: Track; depth: number } | null {
  const track = trace.tracks.find(one => event >= one.first && event < one.last);
  if (!track) return null;
  return { track, depth: track.rows.findIndex(row => event >= row.first && event < row.last) };
}

/** Returns the host event that launched a device event, or -1. */
export function launchOf(trace: Trace, event: number): number {
  const at = lowerBound(trace.linkTo.length, k => trace.linkTo[k] >= event);
  return trace.linkTo[at] === event ? trace.linkFrom[at] : -1;
}

/** Returns the device events that a host event launched, in order. */
export function launchedBy(trace: Trace, event: number): number[] {
  const { byFrom, linkFrom, linkTo } = trace;
  const found: number[] = [];
  for (let k = lowerBound(byFrom.length, at => linkFrom[byFrom[at]] >= event); k < byFrom.length && linkFrom[byFrom[k]] === event; k++) {
    found.push(linkTo[byFrom[k]]);
  }
  return found.sort((a, b) => a - b);
}

function lowerBound(n: number, reached: (index: number) => boolean): number {
  let lo = 0;
  let hi = n;
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (reached(mid)) hi = mid;
    else lo = mid + 1;
  }
  return lo;
}

export type Statistics = { count: number; sum: number; mean: number; min: number; max: number; p50: number; p99: number };

/** Returns the figures of some durations. */
export function statistics(durations: number[]): Statistics {
  const sorted = Float64Array.from(durations).sort();
  const count = sorted.length;
  const sum = sorted.reduce((total, value) => total + value, 0);
  const rank = (q: number) => sorted[Math.max(0, Math.ceil(q * count) - 1)];
  return { count, sum, mean: sum / count, min: sorted[0], max: sorted[count - 1], p50: rank(0.5), p99: rank(0.99) };
}
