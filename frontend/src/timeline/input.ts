// Mouse, wheel and keys on the timeline.
import { firstEndingAfter } from '../lanes.ts';
import { type Listen, isCombined, listener } from '../link.ts';
import { launchOf, launchedBy, placeOf } from '../trace.ts';
import type { TimelineCanvas } from './canvas.ts';
import { LABELS, OVERVIEW, RULER, keyOf } from './layout.ts';

const SNAP_PIXELS = 7;

type Drag = { x: number; y: number; from: number; to: number; scroll: number; kind: 'pan' | 'overview' | 'measure'; moved: boolean; anchor: number };

/** Connects a canvas with pointer and keyboard; returns what disconnects it. */
export function connect(view: TimelineCanvas): () => void {
  const stop = new AbortController();
  const observer = new ResizeObserver(() => view.resize());
  observer.observe(view.canvas);
  const on = listener(view.canvas, stop.signal);
  pointers(view, on);
  wheel(view, on);
  keys(view, on);
  return () => {
    stop.abort();
    observer.disconnect();
  };
}

function pointers(view: TimelineCanvas, on: Listen): void {
  const { canvas } = view;
  let drag: Drag | null = null;
  on('pointerdown', event => {
    const { offsetX: x, offsetY: y } = event;
    const kind = y < OVERVIEW ? 'overview' : event.shiftKey ? 'measure' : 'pan';
    drag = { x, y, from: view.from, to: view.to, scroll: view.scroll, kind, moved: false, anchor: snapped(view, x, y) };
    canvas.setPointerCapture(event.pointerId);
    canvas.focus({ preventScroll: true });
  });
  on('pointermove', event => {
    const { offsetX: x, offsetY: y } = event;
    if (!drag) {
      const hit = view.hit(x, y);
      const before = view.hovered;
      view.hovered = hit && 'event' in hit ? hit.event : null;
      view.on.hover(hit, event.clientX, event.clientY);
      canvas.style.cursor = hit && !('label' in hit) ? 'pointer' : x < LABELS ? 'default' : event.shiftKey ? 'col-resize' : 'grab';
      if (view.hovered !== before) view.redraw();
      return;
    }
    drag.moved ||= Math.abs(x - drag.x) + Math.abs(y - drag.y) > 3;
    if (drag.moved) follow(view, drag, x, y);
  });
  on('pointerup', event => {
    if (drag?.kind === 'overview' && !drag.moved) follow(view, drag, event.offsetX, event.offsetY);
    else if (drag && !drag.moved) click(view, event.offsetX, event.offsetY);
    else if (drag?.kind === 'measure') view.on.measured(view.measure);
    drag = null;
  });
  on('pointerleave', () => {
    view.hovered = null;
    view.on.hover(null, 0, 0);
    view.redraw();
  });
  on('dblclick', event => {
    const hit = view.hit(event.offsetX, event.offsetY);
    if (hit && 'event' in hit) fit(view, hit.event);
  });
}

function follow(view: TimelineCanvas, drag: Drag, x: number, y: number): void {
  const span = drag.to - drag.from;
  if (drag.kind === 'overview') {
    const time = ((x - LABELS) / view.plot) * view.trace.span;
    if (span >= view.trace.span * 0.999) {
      const start = ((drag.x - LABELS) / view.plot) * view.trace.span;
      view.show(Math.min(start, time), Math.max(start, time));
    } else view.show(time - span / 2, time + span / 2);
  } else if (drag.kind === 'measure') {
    const end = snapped(view, x, y);
    view.measure = { from: Math.min(drag.anchor, end), to: Math.max(drag.anchor, end) };
    view.redraw();
  } else {
    const shift = ((x - drag.x) / view.plot) * span;
    view.show(drag.from - shift, drag.to - shift);
    view.scrollTo(drag.scroll - (y - drag.y));
  }
}

/** Returns the moment under the pointer, moved to the edge of an event of that row where one is near. */
function snapped(view: TimelineCanvas, x: number, y: number): number {
  const time = Math.min(Math.max(view.timeAt(Math.max(LABELS, x)), 0), view.trace.span);
  const lane = view.laneAt(y);
  if (!lane) return time;
  const reach = (SNAP_PIXELS * (view.to - view.from)) / view.plot;
  const { start, dur } = lane.events;
  let best = time;
  let distance = reach;
  const first = firstEndingAfter(lane.events, lane.row, time - reach);
  for (let i = first; i < Math.min(first + 50, lane.row.last) && start[i] <= time + reach; i++) {
    for (const edge of [start[i], start[i] + dur[i]]) {
      if (Math.abs(edge - time) < distance) {
        best = edge;
        distance = Math.abs(edge - time);
      }
    }
  }
  return best;
}

function click(view: TimelineCanvas, x: number, y: number): void {
  const hit = view.hit(x, y);
  if (x < LABELS) {
    if (hit && 'finding' in hit) view.on.finding(hit.finding, true);
    if (y < view.top) return;
    const inside = y - view.top + view.scroll;
    const head = view.layout.scrolled.heads.find(one => one.key && inside >= one.y && inside < one.y + Math.max(16, one.height));
    if (head) view.fold(head.key);
    return;
  }
  if (y < OVERVIEW + RULER) return;
  if (hit && 'finding' in hit) {
    view.measure = { from: hit.from, to: hit.to };
    view.on.measured(view.measure);
    view.on.finding(hit.finding, false);
    return;
  }
  if (!hit && view.measure) {
    view.measure = null;
    view.on.measured(null);
  }
  view.select(hit && 'event' in hit ? hit.event : null);
}

function fit(view: TimelineCanvas, event: number): void {
  const { start, dur } = view.trace;
  const margin = Math.max(dur[event] * 0.3, 20);
  view.show(start[event] - margin, start[event] + dur[event] + margin);
}

function wheel(view: TimelineCanvas, on: Listen): void {
  on('wheel', event => {
    if (event.ctrlKey || event.metaKey || event.offsetY < OVERVIEW + RULER) {
      event.preventDefault();
      view.zoom(Math.exp(event.deltaY * 0.003), event.offsetX);
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      view.pan((event.deltaX || event.deltaY) / 900);
    } else if (view.scrollTo(view.scroll + event.deltaY)) event.preventDefault();
  });
}

function keys(view: TimelineCanvas, on: Listen): void {
  const held = new Set<string>();
  let last = 0;
  const move = (now: number) => {
    if (!held.size) return;
    const elapsed = last ? Math.min(50, now - last) : 16;
    last = now;
    const middle = LABELS + view.plot / 2;
    if (held.has('w')) view.zoom(Math.exp(-elapsed * 0.004), middle);
    if (held.has('s')) view.zoom(Math.exp(elapsed * 0.004), middle);
    if (held.has('a')) view.pan(-elapsed * 0.0012);
    if (held.has('d')) view.pan(elapsed * 0.0012);
    requestAnimationFrame(move);
  };
  on('keydown', event => {
    if (isCombined(event)) return;
    const key = event.key.toLowerCase();
    if ('wasd'.includes(key)) {
      if (!held.size) {
        last = 0;
        requestAnimationFrame(move);
      }
      held.add(key);
    } else if (!command(view, event.key)) return;
    event.preventDefault();
  });
  on('keyup', event => held.delete(event.key.toLowerCase()));
  on('blur', () => held.clear());
}

/** Does what a key asks for; returns whether it asked for anything. */
function command(view: TimelineCanvas, key: string): boolean {
  const { trace, selected } = view;
  if (key === '0') view.show(0, trace.span);
  else if (key === 'm' && selected !== null) {
    view.measure = { from: trace.start[selected], to: trace.start[selected] + trace.dur[selected] };
    view.on.measured(view.measure);
    view.redraw();
  } else if (key === 'f' && view.measure) view.show(view.measure.from, view.measure.to);
  else if (key === 'f' && selected !== null) fit(view, selected);
  else if (key === 'Escape') {
    view.measure = null;
    view.on.measured(null);
    view.select(null);
  } else if (key === 'Enter' && selected !== null) {
    const place = placeOf(trace, selected);
    if (place && place.track.rows.length > 1) view.fold(keyOf(place.track));
  } else if (key === '[' || key === ']') alike(view, key === ']' ? 1 : -1);
  else if (key.startsWith('Arrow')) neighbour(view, key);
  else return false;
  return true;
}

/** Selects the previous or next event of the same name in the same track. */
function alike(view: TimelineCanvas, step: 1 | -1): void {
  const { trace, selected } = view;
  const place = selected === null ? null : placeOf(trace, selected);
  if (selected === null || !place) return;
  const row = place.track.rows[place.depth];
  for (let i = selected + step; i >= row.first && i < row.last; i += step) {
    if (trace.name[i] === trace.name[selected]) {
      view.select(i, true);
      return;
    }
  }
}

/** Selects the neighbour in a row, the event above or below, or across a launch. */
function neighbour(view: TimelineCanvas, key: string): void {
  const { trace, selected } = view;
  const place = selected === null ? null : placeOf(trace, selected);
  if (selected === null || !place) {
    const first = view.layout.scrolled.lanes[0];
    if (first) view.select(Math.min(firstEndingAfter(trace, first.row, view.from), first.row.last - 1), true);
    return;
  }
  const rows = place.track.rows;
  if (key === 'ArrowLeft' || key === 'ArrowRight') {
    const next = selected + (key === 'ArrowRight' ? 1 : -1);
    if (next >= rows[place.depth].first && next < rows[place.depth].last) view.select(next, true);
    return;
  }
  const down = key === 'ArrowDown';
  const row = rows[place.depth + (down ? 1 : -1)];
  const inside = row ? firstEndingAfter(trace, row, trace.start[selected]) : -1;
  const fits = row && inside < row.last && trace.start[inside] <= trace.start[selected] + trace.dur[selected];
  if (fits) view.select(inside, true);
  else {
    const across = down ? (launchedBy(trace, selected)[0] ?? -1) : launchOf(trace, selected);
    if (across >= 0) view.select(across, true);
  }
}
