// Where each row of the timeline stands: pinned rows (findings, steps, causes) above, the rest scrolls.
import { type Events, type Row, firstEndingAfter } from '../lanes.ts';
import { say, told } from '../text.ts';
import type { Curve, Trace, Track } from '../trace.ts';

/** Width of the names at the left; less where the window is narrow. */
export let LABELS = 176;

/** Gives the names as much of a canvas as its width allows. */
export function fitLabels(width: number): void {
  LABELS = width < 600 ? 104 : 176;
}

export const OVERVIEW = 46;
export const RULER = 24;

export type Lane = { y: number; height: number; events: Events; row: Row; track: number; depth: number; marks: boolean };
export type Head = { y: number; height: number; kind: 'group' | 'track'; text: string; note: string; key: string; folded: boolean };
export type CurveLane = { y: number; height: number; curve: Curve };
export type Part = { lanes: Lane[]; heads: Head[]; curves: CurveLane[]; height: number };
export type Layout = { pinned: Part; scrolled: Part };

/** What a finding points at in the timeline: one row of marks per finding. */
export type Marks = Events & { rows: Row[]; findings: number[]; titles: string[] };

const PINNED = new Set(['step', 'cause']);
const ROW_HEIGHT = { step: 17, cause: 20, device: 22, loader: 17, host: 16, finding: 15, curve: 44 };
const THIN = 6;
const MOST_ROWS_AT_FIRST = 14;

/** Returns the keys of tracks to show folded at first: deep stacks of threads other than the main one. */
export function foldedAtFirst(trace: Trace): Set<string> {
  const deep = trace.tracks.filter(t => t.meta.role === 'host' && !t.meta.main && t.rows.length > MOST_ROWS_AT_FIRST / 2);
  return new Set(deep.map(keyOf));
}

export function keyOf(track: Track): string {
  return `${track.meta.group}/${told(track.meta.label)}/${track.first}`;
}

/** Returns the layout of a trace with some tracks folded. */
export function layOut(trace: Trace, marks: Marks | null, folded: Set<string>): Layout {
  const pinned: Part = { lanes: [], heads: [], curves: [], height: 0 };
  const scrolled: Part = { lanes: [], heads: [], curves: [], height: 0 };
  if (marks?.rows.length) addMarks(pinned, marks);
  let group = '';
  trace.tracks.forEach((track, index) => {
    if (!track.rows.length) return;
    const part = PINNED.has(track.meta.role) ? pinned : scrolled;
    if (part === scrolled && track.meta.group !== group) addGroup(part, (group = track.meta.group));
    addTrack(part, trace, track, index, folded);
  });
  for (const curve of trace.curves) {
    if (curve.meta.group === 'deep_memory') continue; // its time is not this one
    if (curve.meta.group !== group) addGroup(scrolled, (group = curve.meta.group));
    scrolled.heads.push(head(scrolled.height, ROW_HEIGHT.curve, 'track', told(curve.meta.label), ''));
    scrolled.curves.push({ y: scrolled.height, height: ROW_HEIGHT.curve, curve });
    scrolled.height += ROW_HEIGHT.curve + 6;
  }
  return { pinned, scrolled };
}

function addMarks(part: Part, marks: Marks): void {
  const height = ROW_HEIGHT.finding;
  marks.rows.forEach((row, depth) => {
    const finding = marks.findings[depth];
    part.heads.push(head(part.height + 3, height, 'track', `${finding + 1}  ${marks.titles[finding] ?? ''}`, ''));
    part.lanes.push({ y: part.height + 3, height, events: marks, row, track: -1, depth, marks: true });
    part.height += height;
  });
  part.height += 7;
}

function addGroup(part: Part, group: string): void {
  const [id, index] = group.split(' ');
  part.heads.push(head(part.height, 20, 'group', say(`page.group.${id}`, { index: index ?? '' }), ''));
  part.height += 23;
}

function addTrack(part: Part, trace: Trace, track: Track, index: number, folded: Set<string>): void {
  const key = keyOf(track);
  const height = ROW_HEIGHT[track.meta.role];
  const isFolded = folded.has(key);
  const rows = isFolded ? track.rows.slice(0, 1) : track.rows;
  const note = track.meta.role === 'step' || track.meta.role === 'cause' ? '' : say('page.timeline.events', { count: track.last - track.first });
  const heights = rows.map(row => (track.meta.role === 'host' && spansAll(trace, row) ? THIN : height));
  const tall = heights.reduce((sum, one) => sum + one, 0);
  part.heads.push(head(part.height, tall, 'track', told(track.meta.label), note, track.rows.length > 1 ? key : '', isFolded));
  rows.forEach((row, depth) => {
    part.lanes.push({ y: part.height, height: heights[depth], events: trace, row, track: index, depth, marks: false });
    part.height += heights[depth];
  });
  part.height += part.height ? 5 : 0;
}

/** Returns whether one event of a row lies over nearly all the time: a caller that tells little, drawn thin. */
function spansAll(trace: Trace, row: Row): boolean {
  const middle = firstEndingAfter(trace, row, trace.span / 2);
  return middle < row.last && trace.dur[middle] > 0.9 * trace.span;
}

function head(y: number, height: number, kind: Head['kind'], text: string, note: string, key = '', folded = false): Head {
  return { y, height, kind, text, note, key, folded };
}
