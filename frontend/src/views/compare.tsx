// Two reports beside each other: what the difference is made of. What got slower stands right, what got faster left.
import type { CompareData, Language } from '../page.ts';
import { Empty, HowToRead } from '../parts.tsx';
import { duration, has, say } from '../text.ts';
import { Grid } from './grid.tsx';

const ROW = 24;
const MIDDLE = 690;
const HALF = 220;
const LABELS_WIDTH = 330;

type Change = CompareData['ledger'][number];

export function CompareView({ data, language }: { data: CompareData | null; language: Language }) {
  if (!data) return <Empty>{say('page.compare.empty')}</Empty>;
  const name = (one: Change) => (has(`cause.${one.name}`) ? say(`cause.${one.name}`) : one.name);
  return (
    <div class="compare">
      <div class="bar"><HowToRead view="compare" /></div>
      <section class="block">
        <h3>{data.sentence[language]}</h3>
        <p class="muted">{data.notes[language]}</p>
      </section>
      {data.ledger.length > 0 && <Diverging title={say('compare.ledger')} changes={data.ledger.slice(0, 14)} name={name} />}
      <section class="block">
        {(['gone', 'new', 'kept'] as const).map(kind => data.findings[kind][language].length > 0 && (
          <div><h3>{say(`compare.${kind}`)}</h3><ul>{data.findings[kind][language].map(title => <li><span aria-hidden="true">{{ gone: '✓', new: '!', kept: '=' }[kind]}</span> {title}</li>)}</ul></div>
        ))}
      </section>
      {data.operators.length > 0 && (
        <section class="block">
          <h3>{say('compare.operators')}</h3>
          <Grid id="operators" columns={['name', 'before_ns', 'after_ns', 'change_ns']} rows={data.operators.map(one => [one.name, one.before_ns, one.after_ns, one.after_ns - one.before_ns])} />
        </section>
      )}
    </div>
  );
}

function Diverging({ title, changes, name }: { title: string; changes: Change[]; name: (one: Change) => string }) {
  const most = Math.max(1, ...changes.map(one => Math.abs(one.after_ns - one.before_ns)));
  return (
    <figure>
      <figcaption>{title}</figcaption>
      <p class="legend"><span><i class="swatch" style={{ background: '#0072b2' }} />▾ {say('page.compare.faster')}</span><span><i class="swatch" style={{ background: '#d55e00' }} />▴ {say('page.compare.slower')}</span></p>
      <svg viewBox={`0 0 1000 ${changes.length * ROW}`} width="100%" role="img" aria-label={title} class="diverging">
        <line class="grid" x1={MIDDLE} x2={MIDDLE} y1="0" y2={changes.length * ROW} />
        {changes.map((one, row) => {
          const change = one.after_ns - one.before_ns;
          const wide = (Math.abs(change) / most) * HALF;
          const slower = change > 0;
          return (
            <g>
              <text class="axis" x={LABELS_WIDTH - 8} y={row * ROW + 15} text-anchor="end">{name(one)}</text>
              <rect x={slower ? MIDDLE : MIDDLE - wide} y={row * ROW + 4} width={Math.max(1, wide)} height={ROW - 8} fill={slower ? '#d55e00' : '#0072b2'} />
              <text class="axis" x={slower ? MIDDLE + wide + 6 : MIDDLE - wide - 6} y={row * ROW + 15} text-anchor={slower ? 'start' : 'end'}>{`${slower ? '▴ +' : '▾ −'}${duration(Math.abs(change))}`}</text>
              <title>{`${name(one)}: ${duration(one.before_ns)} → ${duration(one.after_ns)}`}</title>
            </g>
          );
        })}
      </svg>
    </figure>
  );
}
