// The timeline with its search box, its sentences, and the pane of details below.
import { useEffect, useRef, useState } from 'preact/hooks';
import { isCombined, readPlace, writePlace } from '../link.ts';
import type { FindingMatch } from '../page.ts';
import { HowToRead, SavePng, Tip, type TipContent } from '../parts.tsx';
import { onPrint } from '../theme.ts';
import { duration, say, shortName, told } from '../text.ts';
import type { Trace } from '../trace.ts';
import { type Hit, type Span, TimelineCanvas } from './canvas.ts';
import { EventDetails, SpanDetails } from './details.tsx';
import { connect } from './input.ts';
import { findMarks } from './marks.ts';

type Props = { trace: Trace; matches: FindingMatch[]; titles: string[]; goTo: { name?: string; finding?: number } | null; stamp: string; more: ((from: number, to: number) => void) | null };

export function TimelineView({ trace, matches, titles, goTo, stamp, more }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const search = useRef<HTMLInputElement>(null);
  const view = useRef<TimelineCanvas | null>(null);
  const [tip, setTip] = useState<TipContent | null>(null);
  const [selected, setSelected] = useState<number | null>(null);
  const [span, setSpan] = useState<Span | null>(null);
  const [finding, setFinding] = useState<number | null>(null);
  const [matchesFound, setMatchesFound] = useState<number | null>(null);

  useEffect(() => {
    let pending = 0;
    if (!canvas.current) return undefined;
    const timeline = new TimelineCanvas(canvas.current, trace, findMarks(trace, matches, titles), {
      select: event => {
        setSelected(event);
        writePlace({ event: event === null ? undefined : String(event) });
      },
      hover: (hit, x, y) => setTip(hit && tipFor(timeline, hit, titles, x, y)),
      moved: () => {
        clearTimeout(pending);
        pending = window.setTimeout(() => {
          writePlace({ from: timeline.from.toFixed(0), to: timeline.to.toFixed(0) });
          const [from, to] = lacking(timeline);
          if (more && to > from) more(from, to);
        }, 200);
      },
      measured: setSpan,
      finding: (index, bring) => (bring ? showFinding(timeline, index, setSpan, setFinding) : setFinding(index)),
    });
    view.current = timeline;
    const disconnect = connect(timeline);
    timeline.resize();
    restore(timeline);
    (window as unknown as { uncorkTimeline: TimelineCanvas }).uncorkTimeline = timeline;
    const unprint = onPrint(() => {
      timeline.restyle();
      timeline.draw();
    });
    return () => {
      unprint();
      clearTimeout(pending);
      disconnect();
    };
  }, [trace]);

  useEffect(() => {
    if (view.current?.marks) view.current.marks.titles = titles;
    view.current?.restyle();
  }, [stamp]);

  useEffect(() => {
    const timeline = view.current;
    if (!timeline || !goTo) return;
    canvas.current?.focus({ preventScroll: true }); // its keys work from where one is led to
    if (goTo.name !== undefined) find(goTo.name, true);
    if (goTo.finding !== undefined) showFinding(timeline, goTo.finding, setSpan, setFinding);
  }, [goTo]);

  useEffect(() => {
    const key = (event: KeyboardEvent) => {
      if (event.target instanceof HTMLInputElement || isCombined(event)) return;
      if (event.key === '/') {
        event.preventDefault();
        search.current?.focus();
      } else if (event.key === 'n' && view.current?.marks) {
        const shown = view.current.marks.findings;
        const next = shown[(shown.indexOf(finding ?? -1) + 1) % shown.length];
        showFinding(view.current, next, setSpan, setFinding);
      }
    };
    window.addEventListener('keydown', key);
    return () => window.removeEventListener('keydown', key);
  }, [finding]);

  function find(text: string, exact = false) {
    const timeline = view.current;
    if (!timeline) return;
    const wanted = text.toLowerCase();
    if (search.current && exact) search.current.value = text;
    if (!wanted) {
      timeline.found = null;
      setMatchesFound(null);
    } else {
      const labels = trace.meta.names.map(name => (exact ? name : name.toLowerCase()));
      timeline.found = Uint8Array.from(labels, name => Number(exact ? name === text : name.includes(wanted)));
      let count = 0;
      for (let i = 0; i < trace.start.length; i++) count += timeline.found[trace.name[i]];
      setMatchesFound(count);
    }
    timeline.redraw();
  }

  function nextFound() {
    const timeline = view.current;
    if (!timeline?.found) return;
    const n = trace.start.length;
    const begin = (timeline.selected ?? -1) + 1;
    for (let k = 0; k < n; k++) {
      const i = (begin + k) % n;
      if (timeline.found[trace.name[i]]) {
        timeline.select(i, true);
        return;
      }
    }
  }

  return (
    <div class="timeline">
      <div class="bar">
        <input
          ref={search} type="search" placeholder={say('page.search')} aria-label={say('page.search')}
          onInput={event => find(event.currentTarget.value)}
          onKeyDown={event => {
            if (event.key === 'Enter') nextFound();
            if (event.key === 'Escape') {
              event.currentTarget.value = '';
              find('');
              canvas.current?.focus();
            }
          }}
        />
        <span class="muted" aria-live="polite">{matchesFound === null ? '' : say('page.search.found', { count: matchesFound })}</span>
        <span id="timeline-keys" class="keys">{say('page.timeline.keys')}</span>
        <SavePng canvas={() => canvas.current} name="timeline" />
        <HowToRead view="timeline" />
      </div>
      <p id="timeline-rows" class="hidden">{say('page.timeline.rows', { rows: trace.tracks.map(track => told(track.meta.label)).join(', ') })}</p>
      <Sentences trace={trace} show={(from, to) => view.current?.show(from, to)} select={event => view.current?.select(event, true)} />
      <canvas ref={canvas} class="lanes" tabIndex={0} role="application" aria-label={say('page.tab.timeline')} aria-describedby="timeline-keys timeline-rows" />
      <Tip tip={tip} />
      <div class="details" aria-live="polite">
        {selected !== null && <EventDetails trace={trace} event={selected} select={event => view.current?.select(event, true)} />}
        {finding !== null && span && <p class="muted">{say('page.timeline.finding', { number: finding + 1, title: titles[finding] ?? '' })}</p>}
        {span && <SpanDetails trace={trace} span={span} pick={name => find(trace.meta.names[name], true)} zoom={() => view.current?.show(span.from, span.to)} />}
        {selected === null && !span && <p class="muted">{say('page.timeline.click')}</p>}
      </div>
    </div>
  );
}

/** The patterns found, and the three longest operations: each a sentence that shows its place when clicked. */
function Sentences({ trace, show, select }: { trace: Trace; show: (from: number, to: number) => void; select: (event: number) => void }) {
  const { patterns, longest, names, left_out } = trace.meta;
  if (!patterns.length && !longest.length && !left_out.length) return null;
  return (
    <div class="sentences">
      {patterns.map(({ message, from_ns, to_ns }) => (
        <p>
          {told(message)} <button class="link" onClick={() => show(from_ns, to_ns)}>{say('page.show')}</button>
        </p>
      ))}
      {longest.length > 0 && (
        <p>
          {say('page.timeline.longest')}{' '}
          {longest.map((event, index) => (
            <button class="link" title={names[trace.name[event]]} onClick={() => select(event)}>
              <b class="number">{index + 1}</b> {short(shortName(names[trace.name[event]]), 46)} · {duration(trace.dur[event])}
            </button>
          ))}
        </p>
      )}
      {left_out.map(message => <p class="muted">{told(message)}</p>)}
    </div>
  );
}

function short(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

function tipFor(view: TimelineCanvas, hit: Hit, titles: string[], x: number, y: number): TipContent {
  if ('finding' in hit) return { title: `${hit.finding + 1} · ${titles[hit.finding] ?? ''}`, lines: [duration(hit.to - hit.from)], x, y };
  if ('label' in hit) return { title: hit.label, lines: [], x, y };
  const { trace } = view;
  const { module, place, shapes } = trace.detailOf(hit.event);
  return { title: view.label(hit.event), lines: [duration(trace.dur[hit.event]), module, place, shapes].filter(Boolean), x, y };
}

function showFinding(view: TimelineCanvas, index: number, setSpan: (span: Span) => void, setFinding: (index: number) => void): void {
  const { marks } = view;
  const at = marks ? marks.findings.indexOf(index) : -1;
  if (!marks || at < 0) return;
  const row = marks.rows[at];
  let longest = row.first;
  for (let i = row.first; i < row.last; i++) if (marks.dur[i] > marks.dur[longest]) longest = i;
  const from = marks.start[longest];
  const to = from + marks.dur[longest];
  view.measure = { from, to };
  view.show(from - (to - from) * 0.8, to + (to - from) * 0.8);
  setSpan({ from, to });
  setFinding(index);
}

/** A view wider than this part of the recording is an overview: there the longest events do. */
const CLOSE = 0.5;

/** Returns the stretch to ask for, a view's width more on both sides; an empty one where nothing lacks. */
function lacking(view: TimelineCanvas): [number, number] {
  const { trace, from, to } = view;
  const [wholeFrom, wholeTo] = trace.meta.whole_ns;
  const width = to - from;
  if ((from >= wholeFrom && to <= wholeTo) || width > CLOSE * trace.span) return [0, 0];
  return [Math.max(0, from - width), Math.min(trace.span, to + width)];
}

/** Takes the view and the selection from the address. */
function restore(view: TimelineCanvas): void {
  const { from, to, event } = readPlace();
  const start = Number(from);
  const end = Number(to);
  if (from && to && Number.isFinite(start) && Number.isFinite(end) && end > start) view.show(start, end);
  const index = Number(event);
  if (event && Number.isInteger(index) && index >= 0 && index < view.trace.start.length) view.select(index, !from);
}
