// Two reports beside each other: what the difference is made of. What got slower stands right, what got faster left.
import type { CompareData, Language } from '../page.ts';
import { Empty, HowToRead, Titled } from '../parts.tsx';
import { duration, say, sayOr } from '../text.ts';
import { Grid } from './grid.tsx';

type Change = CompareData['ledger'][number];

export function CompareView({ data, language }: { data: CompareData | null; language: Language }) {
  if (!data) return <Empty>{say('page.compare.empty')}</Empty>;
  const name = (one: Change) => sayOr(`cause.${one.name}`, one.name);
  return (
    <div class="compare">
      <div class="bar"><HowToRead view="compare" /></div>
      <Titled title={data.sentence[language]}><p class="muted">{data.notes[language]}</p></Titled>
      {data.ledger.length > 0 && <Diverging title={say('compare.ledger')} changes={data.ledger.slice(0, 14)} name={name} />}
      <section class="block apart">
        {(['gone', 'new', 'kept'] as const).map(kind => data.findings[kind][language].length > 0 && (
          <div><h3>{say(`compare.${kind}`)}</h3><ul>{data.findings[kind][language].map(title => <li><span aria-hidden="true">{{ gone: '✓', new: '!', kept: '=' }[kind]}</span> {title}</li>)}</ul></div>
        ))}
      </section>
      {data.operators.length > 0 && (
        <Titled title={say('compare.operators')}>
          <Grid id="operators" sortBy="change_ns" columns={['name', 'before_ns', 'after_ns', 'change_ns']} rows={data.operators.map(one => [one.name, one.before_ns, one.after_ns, one.after_ns - one.before_ns])} />
        </Titled>
      )}
    </div>
  );
}

function Diverging({ title, changes, name }: { title: string; changes: Change[]; name: (one: Change) => string }) {
  const most = Math.max(1, ...changes.map(one => Math.abs(one.after_ns - one.before_ns)));
  return (
    <figure>
      <figcaption>{title}</figcaption>
      <p class="legend"><span><i class="swatch faster" />▾ {say('page.compare.faster')}</span><span><i class="swatch slower" />▴ {say('page.compare.slower')}</span></p>
      <ul class="diverging">
        {changes.map(one => {
          const change = one.after_ns - one.before_ns;
          const bar = <i class={change > 0 ? 'slower' : 'faster'} style={{ width: `calc((100% - 84px) * ${Math.abs(change) / most})` }} />;
          const text = <span>{`${change > 0 ? '▴ +' : '▾ −'}${duration(Math.abs(change))}`}</span>;
          return (
            <li title={`${duration(one.before_ns)} → ${duration(one.after_ns)}`}>
              <span>{name(one)}</span>
              <span class="minus">{change <= 0 && <>{text}{bar}</>}</span>
              <span class="plus">{change > 0 && <>{bar}{text}</>}</span>
            </li>
          );
        })}
      </ul>
    </figure>
  );
}
