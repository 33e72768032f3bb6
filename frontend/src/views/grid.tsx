// A table of any length: only the rows in sight are in the document; sorts by any column, filters, groups, copies.
import { useMemo, useRef, useState } from 'preact/hooks';
import type { Value } from '../page.ts';
import { Choice, CopyButton } from '../parts.tsx';
import { asWords, quantity, say, sayOr, shortName } from '../text.ts';

const ROW = 27;
const ROWS_AROUND = 8;
const ROWS_SHOWN = 44;
/** So few rows need no filter. */
const FEW = 6;

export type GridProps = {
  id: string;
  columns: string[];
  rows: Value[][];
  /** Row → key of the reading rule that fires on it. */
  marks?: Record<string, string>;
  groups?: string[];
  pick?: (row: Value[]) => void;
  pickLabel?: string;
  /** Column to begin with, the largest first; by itself the first time. */
  sortBy?: string;
};

type Sort = { column: number; down: boolean };
type Line = { values: Value[]; mark: string; members: number };

export function Grid({ id, columns, rows, marks = {}, groups = [], pick, pickLabel, sortBy }: GridProps) {
  const firstNumber = columns.findIndex((_, i) => rows.some(row => typeof row[i] === 'number'));
  const [sort, setSort] = useState<Sort>({ column: Math.max(0, sortBy ? columns.indexOf(sortBy) : startColumn(columns, firstNumber)), down: true });
  const [filter, setFilter] = useState('');
  const [group, setGroup] = useState('');
  const [top, setTop] = useState(0);
  const box = useRef<HTMLDivElement>(null);

  const lines = useMemo(() => {
    const wanted = filter.toLowerCase();
    let list: Line[] = rows.map((values, index) => ({ values, mark: marks[String(index)] ?? '', members: 1 }));
    if (wanted) list = list.filter(line => line.values.some((value, i) => typeof value === 'string' && told(columns[i], value).toLowerCase().includes(wanted)));
    if (group) list = grouped(list, columns, columns.indexOf(group));
    return list.sort((a, b) => (sort.down ? -1 : 1) * compare(a.values[sort.column], b.values[sort.column]));
  }, [rows, marks, filter, group, sort]);

  // A row that stands for several of different names leads nowhere.
  const picking = group && group !== 'name' ? undefined : pick;
  const first = Math.max(0, Math.floor(top / ROW) - ROWS_AROUND);
  const shown = lines.slice(first, first + ROWS_SHOWN);
  const most = useMemo(() => columns.map((_, i) => Math.max(0, ...rows.map(row => (typeof row[i] === 'number' ? row[i] : 0)))), [rows]);
  const numeric = useMemo(() => columns.map((_, i) => isNumber(rows, i)), [rows]);
  const nameAt = Math.max(0, columns.indexOf('name'));
  const order = (column: number) => setSort({ column, down: sort.column === column ? !sort.down : isNumber(rows, column) });

  return (
    <div class="grid">
      <div class="bar">
        {rows.length > FEW && (
          <input
            type="search" placeholder={say('page.filter')} aria-label={say('page.filter')}
            onInput={event => {
              setFilter(event.currentTarget.value);
              box.current?.scrollTo(0, 0);
            }}
          />
        )}
        {groups.length > 0 && (
          <Choice label={say('page.group_by')} value={group} set={setGroup} options={[['', say('page.group_by.none')], ...groups.map((one): [string, string] => [one, heading(one)])]} />
        )}
        <span class="muted" aria-live="polite">{say('page.rows', { shown: lines.length, total: rows.length })}</span>
        <span class="right">
          <CopyButton text={() => csv(columns, lines)} label="CSV" />
          <CopyButton text={() => markdown(columns, lines)} label="Markdown" />
        </span>
      </div>
      <div class="scroll" ref={box} tabIndex={0} role="region" aria-label={say(`page.table.${id}`)} onScroll={event => setTop(event.currentTarget.scrollTop)}>
        <table aria-rowcount={lines.length + 1}>
          <thead>
            <tr>
              {columns.map((column, i) => (
                <th scope="col" class={numeric[i] ? 'n' : ''} aria-sort={sort.column === i ? (sort.down ? 'descending' : 'ascending') : 'none'} title={meaning(column)}>
                  <button onClick={() => order(i)}>{heading(column)}<span aria-hidden="true">{sort.column === i ? (sort.down ? '\u00a0▾' : '\u00a0▴') : ''}</span></button>
                </th>
              ))}
              {picking && <th scope="col"><span class="hidden">{pickLabel}</span></th>}
            </tr>
          </thead>
          <tbody>
            {first > 0 && <tr aria-hidden="true" class="filler" style={{ height: `${first * ROW}px` }}><td colSpan={columns.length} /></tr>}
            {shown.map((line, k) => (
              <tr key={first + k} aria-rowindex={first + k + 2} class={line.mark ? 'marked' : ''}>
                {columns.map((column, i) => <Cell column={column} value={line.values[i]} most={most[i]} number={numeric[i]} note={i === nameAt ? line.mark : ''} />)}
                {picking && <td><button class="small" onClick={() => picking(line.values)}>{pickLabel}</button></td>}
              </tr>
            ))}
            {first + shown.length < lines.length && <tr aria-hidden="true" class="filler" style={{ height: `${(lines.length - first - shown.length) * ROW}px` }}><td colSpan={columns.length} /></tr>}
          </tbody>
        </table>
      </div>
    </div>
  );
}

function Cell({ column, value, most, note, number }: { column: string; value: Value; most: number; note: string; number: boolean }) {
  if (typeof value === 'number') {
    const wide = column.endsWith('share') && most > 0 ? Math.min(100, value * 100) : 0;
    return <td class="n">{wide > 0 && <i class="cellbar" style={{ width: `${wide}%` }} />}<span>{column === 'change_ns' && value > 0 ? '+' : ''}{quantity(column, value).replace('-', '−')}</span></td>;
  }
  const text = value === null || value === undefined || value === '' ? '–' : typeof value === 'boolean' ? say(value ? 'page.yes' : 'page.no') : told(column, value);
  if (number && text === '–') return <td class="n">–</td>;
  return <td title={text}>{note && <b class="note" title={say(note)}>{say(`${note}.short`)}</b>}{ENDS_TELL.has(column) ? <bdi>{tail(text)}</bdi> : <Name text={shortName(text)} />}</td>;
}

/** A name; of one with an argument in angles (a kernel's) that stays whole where there is little room. */
function Name({ text }: { text: string }) {
  const angle = text.indexOf('<');
  return angle < 1 ? <bdi>{text}</bdi> : <span class="ends"><bdi>{text.slice(0, angle)}</bdi><bdi>{text.slice(angle)}</bdi></span>;
}

/** Returns a text as people read it: our words in their language, names as they are. */
function told(column: string, text: string): string {
  return sayOr(`${column}.${text}`, text);
}

/** Columns of paths: their ends tell them apart. */
const ENDS_TELL = new Set(['module', 'place', 'file']);
const TAIL = 56;

function tail(text: string): string {
  return text.length > TAIL ? `…${text.slice(1 - TAIL)}` : text;
}

/** Returns a column's heading; unknown ones are shown as they are named. */
export function heading(column: string): string {
  return column.startsWith('cause.') ? say(column.replace(/_ns$/, '')) : sayOr(`column.${column}`, asWords(column));
}

function meaning(column: string): string | undefined {
  return sayOr(`column.${column}.means`, '') || undefined;
}

function isNumber(rows: Value[][], column: number): boolean {
  return rows.some(row => typeof row[column] === 'number');
}

/** Device time first where there is one, else the first time, else the first number. */
function startColumn(columns: string[], firstNumber: number): number {
  for (const wanted of ['device_self_ns', 'device_total_ns', 'device_ns', 'cpu_self_ns', 'total_ns', 'self_ns', 'ns']) {
    const at = columns.findIndex(column => column === wanted || (wanted === 'ns' && column.endsWith('_ns')));
    if (at >= 0) return at;
  }
  return firstNumber;
}

function compare(a: Value, b: Value): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  if (typeof a === 'number') return 1;
  if (typeof b === 'number') return -1;
  return String(a ?? '').localeCompare(String(b ?? ''));
}

/** Adds up what can be added (times, counts, sizes, shares); other columns keep a value only where all agree. */
function grouped(lines: Line[], columns: string[], by: number): Line[] {
  const groups = new Map<string, Line>();
  for (const line of lines) {
    const key = String(line.values[by] ?? '');
    const known = groups.get(key);
    if (!known) {
      groups.set(key, { ...line, values: [...line.values] });
      continue;
    }
    known.members += line.members;
    known.mark ||= line.mark;
    columns.forEach((column, i) => {
      const [a, b] = [known.values[i], line.values[i]];
      if (i === by) return;
      if (typeof a === 'number' && typeof b === 'number' && addable(column)) known.values[i] = a + b;
      else if (a !== b) known.values[i] = i === 0 && by !== 0 ? say('page.members', { count: known.members }) : null;
    });
  }
  return [...groups.values()];
}

function addable(column: string): boolean {
  return !/mean|median|p\d\d|min|max|ratio|per_s$|efficiency|rank|line|roofline|occupancy/.test(column) && /_ns$|_bytes$|flop$|share$|count|calls|launches/.test(column);
}

function csv(columns: string[], lines: Line[]): string {
  const cell = (value: Value) => {
    const text = value === null || value === undefined ? '' : String(value);
    // A leading sign would run as a formula in a spreadsheet.
    const safe = typeof value === 'string' && /^[=+\-@\t]/.test(text) ? `'${text}` : text;
    return /[",\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  return [columns.join(','), ...lines.map(line => line.values.map(cell).join(','))].join('\n');
}

function markdown(columns: string[], lines: Line[]): string {
  const cell = (column: string, value: Value) => (value === null || value === undefined ? '' : typeof value === 'number' ? quantity(column, value) : String(value)).replaceAll('|', '\\|').replaceAll('\n', ' ');
  const row = (cells: string[]) => `| ${cells.join(' | ')} |`;
  return [row(columns.map(heading)), row(columns.map(() => '---')), ...lines.slice(0, 200).map(line => row(columns.map((column, i) => cell(column, line.values[i]))))].join('\n');
}

