// Where each finding shows in the timeline: the stretches of its causes, or the events of its operator.
import type { FindingMatch } from '../page.ts';
import type { Row } from '../lanes.ts';
import type { Trace } from '../trace.ts';
import type { Marks } from './layout.ts';

const MOST_FINDINGS = 5;

/** Returns the marks of the findings that can be placed, or null where none can. */
export function findMarks(trace: Trace, matches: FindingMatch[], titles: string[]): Marks | null {
  const start: number[] = [];
  const dur: number[] = [];
  const name: number[] = [];
  const rows: Row[] = [];
  const findings: number[] = [];
  matches.slice(0, MOST_FINDINGS).forEach((match, finding) => {
    const named = match.names.length ? spansOf(trace, match.names, false) : [];
    const found = named.length ? named : spansOf(trace, match.causes.map(cause => `cause.${cause}`), true);
    const spans = joined(found, trace.span / 4000);
    if (!spans.length) return;
    const first = start.length;
    for (const [from, to] of spans) {
      start.push(from);
      dur.push(to - from);
      name.push(finding + 1);
    }
    rows.push({ first, last: start.length });
    findings.push(finding);
  });
  if (!rows.length) return null;
  const before = new Float64Array(start.length + 1);
  dur.forEach((value, i) => (before[i + 1] = before[i] + value));
  return { start: Float64Array.from(start), dur: Float64Array.from(dur), name, before, rows, findings, titles };
}

/** Returns where events of some names are: in the row of causes, or in all others. */
function spansOf(trace: Trace, wantedNames: string[], causes: boolean): [number, number][] {
  const wanted = new Uint8Array(trace.meta.names.length);
  const names = new Set(wantedNames);
  trace.meta.names.forEach((name, index) => (wanted[index] = names.has(name) ? 1 : 0));
  const spans: [number, number][] = [];
  for (const track of trace.tracks) {
    if ((track.meta.role === 'cause') !== causes) continue;
    for (let i = track.first; i < track.last; i++) {
      if (wanted[trace.name[i]] && trace.dur[i] > 0) spans.push([trace.start[i], trace.start[i] + trace.dur[i]]);
    }
  }
  return spans.sort((a, b) => a[0] - b[0]);
}

/** Joins stretches that overlap or lie closer together than a gap. */
function joined(spans: [number, number][], gap: number): [number, number][] {
  const out: [number, number][] = [];
  for (const [from, to] of spans) {
    const last = out.at(-1);
    if (last && from <= last[1] + gap) last[1] = Math.max(last[1], to);
    else out.push([from, to]);
  }
  return out;
}
