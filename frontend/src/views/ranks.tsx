// Ranks side by side: what a mean step went to on each, those waited for outlined; then what the collectives cost.
import { useState } from 'preact/hooks';
import type { RankData } from '../page.ts';
import { Choice, Empty, HowToRead, Tip, type TipContent } from '../parts.tsx';
import { duration, say } from '../text.ts';
import { IDLE, fillOf } from '../theme.ts';
import { Section } from './section.tsx';
import { Legend } from './steps.tsx';

/** More ranks than this are shown as squares: as many bars would be seen by nobody. */
const MOST_BARS = 64;
/** Time that a rank spends with others is not its own. */
const WITH_OTHERS = new Set(['comm', 'comm_wait']);

type Props = { ranks: RankData | null; comm: Record<string, unknown> | null; late: number[]; shown: number[] };

export function RanksView({ ranks, comm, late, shown }: Props) {
  const [tip, setTip] = useState<TipContent | null>(null);
  if (!ranks && !comm) return <Empty>{say('page.ranks.empty')}</Empty>;
  const many = ranks !== null && ranks.numbers.length > MOST_BARS;
  const tipOf = (at: number, event: PointerEvent) => setTip({ title: say('page.ranks.rank', { rank: ranks!.numbers[at] }), lines: spelt(ranks!, at), x: event.clientX, y: event.clientY });
  return (
    <div class="ranks">
      <div class="bar"><HowToRead view="ranks" /></div>
      {ranks && many && <Heat ranks={ranks} late={late} tip={tipOf} leave={() => setTip(null)} />}
      {ranks && <Bars ranks={ranks} late={late} places={places(ranks, many ? shown : ranks.numbers)} title={say(many ? 'page.ranks.of_some' : 'page.ranks.title')} tip={tipOf} leave={() => setTip(null)} />}
      <Tip tip={tip} />
      {comm && <Section content={Object.fromEntries(Object.entries(comm).filter(([name]) => name !== 'ranks'))} />}
    </div>
  );
}

function places(ranks: RankData, numbers: number[]): number[] {
  return numbers.map(number => ranks.numbers.indexOf(number)).filter(at => at >= 0);
}

/** Returns what a rank's mean step went to, in words. */
function spelt(ranks: RankData, at: number): string[] {
  return ranks.causes.map((cause, k) => [cause, ranks.ns[k][at]] as const).filter(one => one[1] > 0).map(([cause, ns]) => `${say(`cause.${cause}`)} ${duration(ns)}`);
}

type Pointing = { tip: (at: number, event: PointerEvent) => void; leave: () => void };

function Bars({ ranks, late, places, title, tip, leave }: { ranks: RankData; late: number[]; places: number[]; title: string } & Pointing) {
  const most = Math.max(1, ...places.map(at => ranks.total_ns[at]));
  return (
    <figure>
      <figcaption>{title}</figcaption>
      <Legend causes={ranks.causes} />
      <ul class="rankbars">
        {places.map(at => {
          const isLate = late.includes(ranks.numbers[at]);
          return (
            <li onPointerMove={event => tip(at, event)} onPointerLeave={leave}>
              <span>{say('page.ranks.rank', { rank: ranks.numbers[at] })}</span>
              <span class={`stretch${isLate ? ' late' : ''}`} style={{ width: `${(ranks.total_ns[at] / most) * 100}%` }} role="img" aria-label={spelt(ranks, at).join(', ')}>
                {ranks.causes.map((cause, k) => ranks.ns[k][at] > 0 && <i class={IDLE.has(cause) ? 'idle' : ''} style={{ flexGrow: ranks.ns[k][at], background: fillOf(cause) }} />)}
              </span>
              <span class="muted">{duration(ranks.total_ns[at])}{isLate ? ` · ${say('page.ranks.late')}` : ''}</span>
            </li>
          );
        })}
      </ul>
    </figure>
  );
}

/** Every rank as a square: where a group of them stands out, so does the node or the switch they share. */
function Heat({ ranks, late, tip, leave }: { ranks: RankData; late: number[] } & Pointing) {
  const [what, setWhat] = useState('own');
  const values = ranks.numbers.map((_, at) => valueOf(ranks, what, at));
  const low = Math.min(...values);
  const high = Math.max(...values);
  const columns = ranks.numbers.length > 512 ? 32 : 16;
  return (
    <figure>
      <figcaption>{say('page.ranks.heat')}</figcaption>
      <p class="legend heat-what">
        <Choice
          label={say('page.ranks.heat.what')} value={what} set={setWhat}
          options={[...['own', 'total'].map((one): [string, string] => [one, say(`page.ranks.heat.${one}`)]), ...ranks.causes.map((cause): [string, string] => [cause, say(`cause.${cause}`)])]}
        />
        <span><i class="ramp" /> {say('page.ranks.heat.scale', { low_ns: low, high_ns: high })}</span>
        {late.length > 0 && <span><i class="swatch late" />{say('page.ranks.late')}</span>}
      </p>
      <ol class="heat" style={{ gridTemplateColumns: `repeat(${columns}, minmax(0, 1fr))` }}>
        {ranks.numbers.map((number, at) => (
          <li
            class={late.includes(number) ? 'late' : ''} style={{ '--heat': `${high > low ? Math.round(((values[at] - low) / (high - low)) * 100) : 0}%` }}
            aria-label={`${say('page.ranks.rank', { rank: number })}${say('page.colon')}${duration(values[at])}`}
            onPointerMove={event => tip(at, event)} onPointerLeave={leave}
          ><span>{number}</span></li>
        ))}
      </ol>
    </figure>
  );
}

function valueOf(ranks: RankData, what: string, at: number): number {
  if (what === 'total') return ranks.total_ns[at];
  return ranks.causes.reduce((sum, cause, k) => sum + ((what === 'own' ? !WITH_OTHERS.has(cause) : cause === what) ? ranks.ns[k][at] : 0), 0);
}
