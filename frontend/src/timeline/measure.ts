// What lies in a measured stretch of time: busy and idle per track, and the events by name.
import { firstEndingAfter } from '../lanes.ts';
import { type Statistics, type Trace, type Track, statistics } from '../trace.ts';

export type TrackUse = { track: Track; count: number; busyNs: number };
export type NameUse = Statistics & { name: number };

const MOST_NAMES = 40;

/** Returns the use of each track of devices, loaders and threads (its outermost events) in a stretch. */
export function trackUse(trace: Trace, from: number, to: number): TrackUse[] {
  return trace.tracks
    .filter(track => track.meta.role === 'device' || track.meta.role === 'host' || track.meta.role === 'loader')
    .map(track => {
      const use = { track, count: 0, busyNs: 0 };
      const rows = track.meta.role === 'host' ? track.rows.slice(0, 1) : track.rows;
      for (const row of rows) {
        for (let i = firstEndingAfter(trace, row, from); i < row.last && trace.start[i] < to; i++) {
          use.count++;
          use.busyNs += Math.min(to, trace.start[i] + trace.dur[i]) - Math.max(from, trace.start[i]);
        }
      }
      return use;
    })
    .filter(use => use.count > 0);
}

/** Returns the events that lie wholly inside a stretch, by name, the largest sums first. */
export function nameUse(trace: Trace, from: number, to: number): NameUse[] {
  const durations = new Map<number, number[]>();
  for (const track of trace.tracks) {
    if (track.meta.role === 'step' || track.meta.role === 'cause') continue;
    for (const row of track.rows) {
      for (let i = firstEndingAfter(trace, row, from); i < row.last && trace.start[i] < to; i++) {
        if (trace.start[i] < from || trace.start[i] + trace.dur[i] > to) continue;
        const known = durations.get(trace.name[i]);
        if (known) known.push(trace.dur[i]);
        else durations.set(trace.name[i], [trace.dur[i]]);
      }
    }
  }
  const uses = [...durations].map(([name, all]) => ({ name, ...statistics(all) }));
  return uses.sort((a, b) => b.sum - a.sum).slice(0, MOST_NAMES);
}

/** Returns the figures of all events of one name. */
export function alikeUse(trace: Trace, name: number): Statistics {
  const durations: number[] = [];
  for (let i = 0; i < trace.start.length; i++) if (trace.name[i] === name) durations.push(trace.dur[i]);
  return statistics(durations);
}
