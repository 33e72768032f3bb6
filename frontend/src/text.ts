// Texts of the catalogue in the language that is on, and numbers spelt as src/uncork/units.py spells them.

export type Message = { id: string; params?: Record<string, unknown> };

export type Catalogue = Record<string, string>;

let texts: Catalogue = {};

/** Sets the catalogue that `say` uses. */
export function speak(catalogue: Catalogue): void {
  texts = catalogue;
}

/** Returns a text of the catalogue with its placeholders filled; a key that is not there comes back as it is. */
export function say(key: string, params: Record<string, unknown> = {}): string {
  // In one pass, so that a value with braces in it is never taken for a placeholder.
  return (texts[key] ?? key).replace(/\{(\w+)\}/g, (whole, name: string) => (name in params ? quantity(name, params[name]) : whole));
}

/** Returns whether the catalogue has a text. */
export function has(key: string): boolean {
  return key in texts;
}

/** Returns a text of the catalogue, or what stands for one that is not there. */
export function sayOr(key: string, other: string): string {
  return has(key) ? say(key) : other;
}

/** Returns the name of a field without its unit, in words: what is shown of one that the catalogue does not know. */
export function asWords(name: string): string {
  return name.replace(/_(ns|bytes|share|flop)$/, '').replaceAll('_', ' ');
}

let shortNames = new Map<string, string>();

/** Sets the names that `shortName` knows: kernels without what the compiler added. */
export function shorten(names: Record<string, string>): void {
  shortNames = new Map(Object.entries(names));
}

/** Returns a name as people say it; of one that is not a kernel's, all of it. */
export function shortName(name: string): string {
  return shortNames.get(name) ?? name;
}

/** Returns the text of a message. */
export function told(message: Message): string {
  return say(message.id, message.params);
}

/** Returns a value spelt by the unit its name ends in. */
export function quantity(name: string, value: unknown): string {
  if (typeof value !== 'number') return String(value);
  for (const [suffix, spell] of SPELLED) if (name.endsWith(suffix)) return spell(value);
  return count(value);
}

export function duration(ns: number): string {
  const size = Math.abs(ns);
  if (size >= 0.9995e9) return `${three(ns / 1e9)} s`;
  if (size >= 0.9995e6) return `${three(ns / 1e6)} ms`;
  if (size >= 0.9995e3) return `${three(ns / 1e3)} µs`;
  return `${ns.toFixed(0)} ns`;
}

export function bytes(value: number): string {
  for (const unit of ['B', 'KiB', 'MiB', 'GiB']) {
    if (Math.abs(value) < 1024) return unit === 'B' ? `${value.toFixed(0)} B` : `${three(value)} ${unit}`;
    value /= 1024;
  }
  return `${three(value)} TiB`;
}

export function share(value: number): string {
  const percent = value * 100;
  if (percent > 0 && percent < 0.05) return '<0.1 %';
  return Math.abs(percent) > 0 && Math.abs(percent) < 0.95 ? `${percent.toFixed(1)} %` : `${percent.toFixed(0)} %`;
}

export function count(value: number): string {
  return Number.isInteger(value) ? grouped(value, 0) : grouped(value, 2);
}

function flop(value: number): string {
  return `${scaled(value)}FLOP`;
}

function scaled(value: number): string {
  for (const [limit, prefix] of [[1e15, 'P'], [1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k']] as const) {
    if (Math.abs(value) >= limit) return `${three(value / limit)} ${prefix}`;
  }
  return `${value.toFixed(0)} `;
}

/** Three significant digits without an exponent. */
function three(value: number): string {
  const size = Math.abs(value);
  return grouped(value, size < 9.995 ? 2 : size < 99.95 ? 1 : 0);
}

function grouped(value: number, digits: number): string {
  return value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

const SPELLED: [string, (value: number) => string][] = [
  ['_ns', duration],
  ['bytes', bytes],
  ['share', share],
  ['bytes_per_s', value => `${three(value / 1e9)} GB/s`],
  ['flop_per_s', value => `${scaled(value)}FLOP/s`],
  ['flop', flop],
  ['_bytes_per_step', bytes],
];
