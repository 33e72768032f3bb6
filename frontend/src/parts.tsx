// Small pieces that several views use.
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { copy } from './link.ts';
import type { Value } from './page.ts';
import { quantity, say } from './text.ts';

/** A button that copies a text and says that it did. */
export function CopyButton({ text, label }: { text: () => string; label: string }) {
  const [done, setDone] = useState(false);
  const click = async () => {
    setDone(await copy(text()));
    setTimeout(() => setDone(false), 1500);
  };
  return <button class="small" onClick={click} aria-live="polite">{done ? say('page.copied') : label}</button>;
}

/** A button that saves what a canvas shows as a picture. */
export function SavePng({ canvas, name }: { canvas: () => HTMLCanvasElement | null; name: string }) {
  const save = () => canvas()?.toBlob(picture => {
    if (!picture) return;
    const link = document.createElement('a');
    link.href = URL.createObjectURL(picture);
    link.download = `uncork-${name}.png`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
  return <button class="small" onClick={save}>{say('page.save_png')}</button>;
}

/** Three sentences on how a view is read, folded away. */
export function HowToRead({ view }: { view: string }) {
  return (
    <details class="how">
      <summary>{say('page.how')}</summary>
      <p>{say(`page.how.${view}`)}</p>
    </details>
  );
}

/** A label with its value, in a list of such. */
export function Fact({ label, value, copied }: { label: string; value: string; copied?: boolean }) {
  return (
    <div>
      <dt>{label}</dt>
      <dd><bdi>{value}</bdi>{copied && <CopyButton text={() => value} label={say('page.copy')} />}</dd>
    </div>
  );
}

/** Returns a plain value as people read it. */
export function figure(name: string, value: Value): string {
  if (value === null) return say('page.not_measured');
  return typeof value === 'boolean' ? say(value ? 'page.yes' : 'page.no') : quantity(name, value);
}

type ChoiceProps = { label: string; value: string; set: (value: string) => void; options: [string, string][]; alone?: boolean };

/** A square of a colour, hatched for idle time. */
export function Swatch({ colour, idle }: { colour: string; idle?: boolean }) {
  return <i class={`swatch${idle ? ' idle' : ''}`} style={{ background: colour }} />;
}

/** One of several, in a list that folds out; nothing where there is only one, unless it is wanted alone too. */
export function Choice({ label, value, set, options, alone }: ChoiceProps) {
  if (options.length < 2 && !alone) return null;
  return (
    <label class="choice">
      {label}{' '}
      <select value={value} onChange={event => set(event.currentTarget.value)}>
        {options.map(([id, text]) => <option value={id} selected={id === value}>{text}</option>)}
      </select>
    </label>
  );
}

export type TipContent = { title: string; lines: string[]; x: number; y: number };

/** The box beside the pointer. */
export function Tip({ tip }: { tip: TipContent | null }) {
  if (!tip) return null;
  const left = Math.max(8, Math.min(window.innerWidth - 400, tip.x + 14));
  const above = tip.y > window.innerHeight - 120;
  return (
    <div class="tip" style={{ left: `${left}px`, top: above ? '' : `${tip.y + 16}px`, bottom: above ? `${window.innerHeight - tip.y + 12}px` : '' }}>
      <b>{tip.title.length > 160 ? `${tip.title.slice(0, 160)}…` : tip.title}</b>
      {tip.lines.map(line => <div>{line}</div>)}
    </div>
  );
}

/** A part of a view under its title. */
export function Titled({ title, children }: { title: string; children?: ComponentChildren }) {
  return <section class="block"><h3>{title}</h3>{children}</section>;
}

/** What stands where a view has nothing to show, and why. */
export function Empty({ children }: { children: ComponentChildren }) {
  return <p class="empty">{children}</p>;
}
