// A section of the report as it comes: plain figures as a list, lists of rows as tables.
import type { Value } from '../page.ts';
import { figure, Fact } from '../parts.tsx';
import { asWords, has, say } from '../text.ts';
import { Grid } from './grid.tsx';

type Rows = Record<string, Value>[];

/** Shows plain values under their names; nested ones below. */
export function Section({ content }: { content: Record<string, unknown> }) {
  const plain = Object.entries(content).filter(([, value]) => isPlain(value) || isPlainList(value));
  const rows = Object.entries(content).filter((entry): entry is [string, Rows] => isRows(entry[1]));
  const nested = Object.entries(content).filter((entry): entry is [string, Record<string, unknown>] => isNested(entry[1]));
  return (
    <div class="section">
      {plain.length > 0 && (
        <dl>
          {plain.map(([name, value]) => (
            <Fact label={field(name)} value={spelt(name, value as Value | Value[])} />
          ))}
        </dl>
      )}
      {nested.map(([name, inner]) => <section><h3>{field(name)}</h3><Section content={inner} /></section>)}
      {rows.map(([name, list]) => {
        const columns = [...new Set(list.flatMap(row => Object.keys(row)))].filter(column => list.some(row => row[column] !== null));
        return <section><h3>{field(name)}</h3><Grid id={name} columns={columns} rows={list.map(row => columns.map(column => simple(row[column])))} /></section>;
      })}
    </div>
  );
}

function simple(value: unknown): Value {
  if (value === undefined || value === null) return null;
  return typeof value === 'object' ? JSON.stringify(value) : (value as Value);
}

/** Returns a field's name in the reader's language; unknown ones as they are named. */
export function field(name: string): string {
  for (const key of [`page.field.${name}`, `column.${name}`, `cause.${name}`]) if (has(key)) return say(key);
  return asWords(name);
}

function spelt(name: string, value: Value | Value[]): string {
  if (Array.isArray(value)) return value.map(one => spelt(name, one)).join(', ') || '–';
  return figure(name, value);
}

function isPlain(value: unknown): boolean {
  return value === null || typeof value !== 'object';
}

function isPlainList(value: unknown): boolean {
  return Array.isArray(value) && value.length <= 64 && value.every(isPlain);
}

function isRows(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0 && value.every(one => one !== null && typeof one === 'object' && !Array.isArray(one));
}

function isNested(value: unknown): boolean {
  return value !== null && typeof value === 'object' && !Array.isArray(value) && Object.keys(value).length > 0;
}
