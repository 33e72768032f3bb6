// Colours: one meaning everywhere, shared with Python through palette.json. Each class of causes has one hue of
// Okabe and Ito's palette; colour is never the only carrier (lanes, labels, hatching for idle time).

import { fills, idle, ink } from '../../src/uncork/render/palette.json';

export type Theme = {
  dark: boolean;
  back: string; panel: string; ink: string; muted: string; line: string; accent: string; select: string; shade: string; idle: string;
};

const LIGHT: Theme = {
  dark: false, back: '#ffffff', panel: '#f4f6f9', ink: '#16202b', muted: '#566270', line: '#dfe5ec', accent: '#0067a3',
  select: '#16202b', shade: 'rgba(110,125,140,.30)', idle: '#ffffff',
};

const DARK: Theme = {
  dark: true, back: '#10151b', panel: '#19212b', ink: '#e6edf3', muted: '#9aa7b4', line: '#2a3440', accent: '#5fb8ea',
  select: '#ffd33d', shade: 'rgba(0,0,0,.58)', idle: '#10151b',
};

/** Category or cause of the ledger → fill; dark ink on all of them. */
export const FILLS: Record<string, string> = fills;

/** Causes of the ledger in which the device does nothing: drawn hatched. */
export const IDLE = new Set(idle);

/** Returns the fill of a category. */
export function fillOf(category: string): string {
  return FILLS[category] ?? fills.unknown;
}

/** Returns the theme that is on. */
export function theme(): Theme {
  return document.documentElement.dataset.theme === 'dark' ? DARK : LIGHT;
}

/** Returns the colour of a category, a little lighter or darker by name, so that neighbours can be told apart. */
export function shadeOf(category: string, name: string): string {
  const base = fillOf(category);
  let hash = 0;
  for (let i = 0; i < name.length; i++) hash = (hash * 31 + name.charCodeAt(i)) | 0;
  const factor = 0.94 + (Math.abs(hash) % 13) / 100;
  const channel = (at: number) => Math.min(255, Math.round(parseInt(base.slice(at, at + 2), 16) * factor));
  return `rgb(${channel(1)},${channel(3)},${channel(5)})`;
}

export const ON_FILL = ink;

/** Returns a hatch of a colour: idle time looks like nothing, but says why. */
export function hatch(ctx: CanvasRenderingContext2D, colour: string, back: string): CanvasPattern | string {
  const tile = document.createElement('canvas');
  tile.width = tile.height = 8;
  const pen = tile.getContext('2d');
  if (!pen) return colour;
  pen.fillStyle = colour;
  pen.fillRect(0, 0, 8, 8);
  pen.strokeStyle = back;
  pen.lineWidth = 1.6;
  pen.globalAlpha = 0.75;
  for (const shift of [-8, 0, 8]) {
    pen.beginPath();
    pen.moveTo(shift, 8);
    pen.lineTo(shift + 8, 0);
    pen.stroke();
  }
  return ctx.createPattern(tile, 'repeat') ?? colour;
}

const printers = new Set<() => void>();

/** Has a canvas painted anew, at once, in the light colours of paper and back again; returns what ends that. */
export function onPrint(paint: () => void): () => void {
  printers.add(paint);
  return () => printers.delete(paint);
}

let screen: string | undefined;
window.addEventListener('beforeprint', () => {
  screen = document.documentElement.dataset.theme;
  document.documentElement.dataset.theme = 'light';
  for (const paint of printers) paint();
});
window.addEventListener('afterprint', () => {
  document.documentElement.dataset.theme = screen;
  for (const paint of printers) paint();
});
