// The page below its first screen: tabs over the views. The first screen itself is static HTML, written by Python.
import { render } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { type Block, embedded, gunzip, unpack } from './decode.ts';
import { type Flame, type FlameMeta, readFlame } from './flame/layout.ts';
import { FlameView } from './flame/view.tsx';
import { copy, isCombined, readPlace, scrollTo, writePlace } from './link.ts';
import type { Language, PageData } from './page.ts';
import { Choice, CopyButton, Empty } from './parts.tsx';
import { say, shorten, speak } from './text.ts';
import { TimelineView } from './timeline/view.tsx';
import { type TimelineMeta, type Trace, readTrace } from './trace.ts';
import { AboutView } from './views/about.tsx';
import { CompareView } from './views/compare.tsx';
import { MemoryView } from './views/memory.tsx';
import { RanksView } from './views/ranks.tsx';
import { StepsView } from './views/steps.tsx';
import { TablesView } from './views/tables.tsx';

// Tables, then the timeline, then the flame graph: from what takes long to when, and to who calls it (requirement R7.3).
const ALL_TABS = ['compare', 'tables', 'timeline', 'flame', 'memory', 'steps', 'ranks', 'about'] as const;
type Tab = (typeof ALL_TABS)[number];
let TABS: Tab[] = ALL_TABS.filter(one => one !== 'compare');
const OF_ONE_RANK = new Set<Tab>(['timeline', 'flame', 'memory', 'steps']);
type GoTo = { name?: string; finding?: number } | null;

/** Returns the view to begin with: what changed, else the timeline, else whatever there is. */
function firstTab(page: PageData): Tab {
  const asked = TABS.find(one => one === page.view);
  if (asked) return asked;
  if (page.compare) return 'compare';
  if (document.querySelector('[id^="view-timeline-"]')) return 'timeline';
  return page.memory ? 'memory' : page.tables.length ? 'tables' : 'about';
}

function App({ page }: { page: PageData }) {
  const [language, setLanguage] = useState<Language>(document.documentElement.lang.startsWith('zh') ? 'zh' : 'en');
  const [dark, setDark] = useState(document.documentElement.dataset.theme === 'dark');
  const [tab, setTab] = useState<Tab>(TABS.find(one => one === readPlace().view) ?? firstTab(page));
  const [rank, setRank] = useState<number>(page.shown_ranks.find(one => String(one) === readPlace().rank) ?? page.shown_ranks[0] ?? 0);
  const [trace, setTrace] = useState<Trace | null | undefined>(undefined);
  const [flame, setFlame] = useState<Flame | null | undefined>(undefined);
  const [goTo, setGoTo] = useState<GoTo>(null);
  const [help, setHelp] = useState(false);
  useMemo(() => speak(page.texts[language]), [language]);
  useMemo(() => shorten(page.short_names), [page]);
  const shownRank = useRef(rank);
  shownRank.current = rank;
  const stamp = `${language} ${dark}`;

  const open = (next: Tab) => {
    setTab(next);
    writePlace({ view: next });
  };
  const showInTimeline = (target: GoTo) => {
    setGoTo(target);
    open('timeline');
    scrollTo('views');
  };

  useEffect(() => {
    let left = false;
    const unlessLeft = <T,>(set: (value: T) => void) => (value: T) => { if (!left) set(value); };
    const wantsTrace = tab === 'timeline' || tab === 'flame' || tab === 'memory' || tab === 'steps';
    if (wantsTrace && trace === undefined) load<TimelineMeta, Trace>(`view-timeline-${rank}`, readTrace).then(unlessLeft(setTrace));
    if (tab === 'flame' && flame === undefined) load<FlameMeta, Flame>(`view-flame-${rank}`, readFlame).then(unlessLeft(setFlame));
    return () => { left = true; };
  }, [tab, rank]);

  const showRank = (next: number) => {
    setRank(next);
    setTrace(undefined);
    setFlame(undefined);
    writePlace({ rank: String(next), from: undefined, to: undefined, event: undefined });
  };

  useEffect(() => {
    // A link leads to its place; whoever loads the page anew stays where they were.
    const [visit] = performance.getEntriesByType('navigation') as PerformanceNavigationTiming[];
    const { view, from, event } = readPlace();
    if (page.view || ((view || from || event) && visit?.type === 'navigate')) scrollTo('views');
  }, []);

  useEffect(() => {
    const timeline = trace ? () => document.documentElement.classList.add('drawn') : undefined;
    timeline?.();
    if (trace) performance.mark('timeline-drawn');
  }, [trace]);

  const showFinding = (finding: number, view: string) => {
    const { rank: wanted } = page.findings[finding];
    if (wanted !== null && wanted !== shownRank.current && page.shown_ranks.includes(wanted)) showRank(wanted);
    if (view !== 'memory') return showInTimeline({ finding });
    open('memory');
    scrollTo('views');
  };
  useEffect(() => connectHead({ setLanguage, setDark, showFinding }), []);

  useEffect(() => {
    const key = (event: KeyboardEvent) => {
      if (isTyping(event) || isCombined(event)) return;
      const number = Number(event.key);
      if (number >= 1 && number <= TABS.length) open(TABS[number - 1]);
      else if (event.key === '?') setHelp(shown => !shown);
      else if (event.key === 'Escape') setHelp(false);
    };
    window.addEventListener('keydown', key);
    return () => window.removeEventListener('keydown', key);
  }, []);

  /** Asks the server for all events of a stretch; the view stays where it is. */
  const more = (from: number, to: number) => {
    fetch(`stretch?rank=${rank}&from=${from.toFixed(0)}&to=${to.toFixed(0)}`)
      .then(answer => (answer.ok ? answer.arrayBuffer() : Promise.reject(new Error(answer.statusText))))
      .then(bytes => gunzip(new Uint8Array(bytes)))
      .then(bytes => {
        writePlace({ event: undefined });
        setTrace(readTrace(unpack<TimelineMeta>(bytes)));
      })
      .catch(() => undefined); // The server has gone: what is here stays.
  };

  const inTimeline = trace === null ? null : (name: string) => showInTimeline({ name });
  const openSpan = (from: number, to: number) => {
    writePlace({ from: from.toFixed(0), to: to.toFixed(0), event: undefined });
    open('timeline');
  };
  const openStep = (step: number) => {
    const track = trace?.tracks.find(one => one.meta.role === 'step');
    if (!trace || !track || track.first + step >= track.last) return;
    const event = track.first + step;
    openSpan(trace.start[event], trace.start[event] + trace.dur[event]);
  };

  return (
    <>
      <Tabs tab={tab} open={open} help={() => setHelp(!help)} command={page.command} without={withoutData(page, rank, trace)} />
      <h2 class="on-paper">{say(`page.tab.${tab}`)}</h2>
      {help && <Help />}
      {page.several_ranks && OF_ONE_RANK.has(tab) && <RankChoice ranks={page.shown_ranks} leftOut={page.ranks_left_out} rank={rank} choose={showRank} />}
      <div role="tabpanel" id="panel" aria-labelledby={`tab-${tab}`}>
        {tab === 'compare' && <CompareView data={page.compare} language={language} />}
        {tab === 'timeline' && <Loaded data={trace} empty="page.timeline.empty">{data => <TimelineView trace={data} matches={page.findings} titles={page.finding_titles[language]} goTo={goTo} stamp={stamp} more={page.served ? more : null} />}</Loaded>}
        {tab === 'flame' && <Loaded data={flame} empty="page.flame.empty">{data => <FlameView flame={data} inTimeline={trace ? new Set(trace.meta.names) : null} showInTimeline={name => showInTimeline({ name })} stamp={stamp} />}</Loaded>}
        {tab === 'tables' && <TablesView tables={page.tables} showInTimeline={inTimeline} />}
        {tab === 'memory' && <Loaded data={trace === null ? { none: true } as const : trace} empty="">{data => <MemoryView trace={'none' in data ? null : data} memory={page.memory} stamp={stamp} open={openSpan} />}</Loaded>}
        {tab === 'steps' && <StepsView steps={page.steps[String(rank)] ?? null} open={openStep} stamp={stamp} />}
        {tab === 'ranks' && <RanksView ranks={page.ranks} comm={page.comm} late={page.late_ranks} shown={page.shown_ranks} />}
        {tab === 'about' && <AboutView about={page.about} />}
      </div>
    </>
  );
}

/** The packed views that the page came with: each leaves the document once it is read. */
const BLOCKS = new Set([...document.querySelectorAll('[id^="view-"]')].map(one => one.id));

/** Returns the views with nothing to show but why: they are paler, so nobody looks there first. */
function withoutData(page: PageData, rank: number, trace: Trace | null | undefined): Set<Tab> {
  const block = (name: string) => BLOCKS.has(`view-${name}-${rank}`);
  const curves = trace === undefined ? block('timeline') : trace?.curves.some(curve => curve.meta.group.endsWith('memory'));
  const has: Partial<Record<Tab, boolean>> = {
    tables: page.tables.length > 0, timeline: block('timeline'), flame: block('flame'), memory: page.memory !== null || curves,
    steps: Boolean(page.steps[String(rank)]?.total_ns.length), ranks: Boolean(page.ranks || page.comm),
  };
  return new Set(ALL_TABS.filter(one => has[one] === false));
}

function Tabs({ tab, open, help, command, without }: { tab: Tab; open: (tab: Tab) => void; help: () => void; command: string; without: Set<Tab> }) {
  const move = (event: KeyboardEvent) => {
    const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
    if (!step) return;
    event.preventDefault();
    const next = TABS[(TABS.indexOf(tab) + step + TABS.length) % TABS.length];
    open(next);
    document.getElementById(`tab-${next}`)?.focus();
  };
  return (
    <nav class="tabs">
      <div role="tablist" aria-label={say('page.views')} onKeyDown={move}>
        {TABS.map(one => (
          <button role="tab" id={`tab-${one}`} class={without.has(one) ? 'without' : ''} title={without.has(one) ? say('page.not_measured') : undefined} aria-selected={tab === one} aria-controls="panel" tabIndex={tab === one ? 0 : -1} onClick={() => open(one)}>{say(`page.tab.${one}`)}</button>
        ))}
      </div>
      <CopyButton text={() => location.href} label={say('page.copy_link')} />
      {command && <CopyButton text={() => `${command} --at '${location.hash.slice(1)}'`} label={say('page.command')} />}
      <button class="small" onClick={help} aria-label={say('page.help')}>?</button>
    </nav>
  );
}

/** Which rank is shown, of those that are here: each tells what it stands for. */
function RankChoice({ ranks, leftOut, rank, choose }: { ranks: number[]; leftOut: number[]; rank: number; choose: (rank: number) => void }) {
  const meaning = (index: number) => say(index === 0 ? 'page.rank.most' : index === ranks.length - 1 ? 'page.rank.least' : 'page.rank.median');
  return (
    <p class="rank muted">
      <Choice
        alone label={say('page.one_rank')} value={String(rank)} set={value => choose(Number(value))}
        options={ranks.map((one, index) => [String(one), `${say('page.ranks.rank', { rank: one })}${ranks.length > 1 ? ` · ${meaning(index)}` : ''}`])}
      />
      {leftOut.length > 0 && ` ${say('page.ranks.left_out', { ranks: leftOut.join(', ') })}`}
    </p>
  );
}

function Help() {
  return (
    <section class="help" aria-label={say('page.help')}>
      {say('page.help.keys').split('\n').map(line => {
        const at = line.indexOf(' – ');
        return <div><kbd>{line.slice(0, at)}</kbd> {line.slice(at + 3)}</div>;
      })}
    </section>
  );
}

function Loaded<T>({ data, empty, children }: { data: T | null | undefined; empty: string; children: (data: T) => preact.JSX.Element }) {
  if (data === undefined) return <p class="empty loading">{say('page.loading')}</p>;
  return data === null ? <Empty>{say(empty)}</Empty> : children(data);
}

const loading = new Map<string, Promise<unknown>>();

/** Returns a block's data, decoded when it is first asked for. */
function load<Meta, T>(id: string, read: (block: Block<Meta>) => T): Promise<T | null> {
  let known = loading.get(id) as Promise<T | null> | undefined;
  if (!known) {
    // Let the browser paint first: decoding takes some tenths of a second for a million events.
    known = new Promise(done => requestAnimationFrame(() => setTimeout(done))).then(() => embedded<Meta>(id)).then(block => block && read(block));
    loading.set(id, known);
  }
  return known;
}

function isTyping(event: KeyboardEvent): boolean {
  return event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement || event.target instanceof HTMLTextAreaElement;
}

type HeadActions = { setLanguage: (language: Language) => void; setDark: (dark: boolean) => void; showFinding: (finding: number, view: string) => void };

/** Brings the static head to life: language, theme, copy buttons, links from findings into the timeline. */
function connectHead({ setLanguage, setDark, showFinding }: HeadActions): () => void {
  const root = document.documentElement;
  const click = async (event: MouseEvent) => {
    const button = (event.target as Element).closest<HTMLElement>('[data-act]');
    if (!button) return;
    const { act } = button.dataset;
    if (act === 'language') {
      const next: Language = root.lang.startsWith('zh') ? 'en' : 'zh';
      root.lang = next === 'zh' ? 'zh-Hans' : 'en';
      remember('uncork-language', next);
      setLanguage(next);
    } else if (act === 'theme') {
      root.dataset.theme = root.dataset.theme === 'dark' ? 'light' : 'dark';
      remember('uncork-theme', root.dataset.theme);
      setDark(root.dataset.theme === 'dark');
    } else if (act === 'copy') {
      const text = button.parentElement?.querySelector('code')?.textContent ?? '';
      if (await copy(text)) flash(button);
    } else if (act === 'charts') scrollTo('views');
    else if (act === 'evidence') showFinding(Number(button.dataset.finding), button.dataset.view ?? '');
  };
  document.addEventListener('click', click);
  return () => document.removeEventListener('click', click);
}

function flash(button: HTMLElement): void {
  const before = button.textContent;
  button.textContent = say('page.copied');
  setTimeout(() => (button.textContent = before), 1500);
}

function remember(key: string, value: string): void {
  try {
    localStorage.setItem(key, value);
  } catch {
    // Storage may be forbidden (a notebook's frame); the choice then lasts as long as the page.
  }
}

const data = document.getElementById('page-data')?.textContent;
const place = document.getElementById('app');
if (data && place) {
  place.textContent = '';
  const page = JSON.parse(data) as PageData;
  if (page.compare) TABS = [...ALL_TABS];
  render(<App page={page} />, place);
}
