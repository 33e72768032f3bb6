// Ranks side by side: what a mean step went to on each, the slowest outlined; then what the collectives cost.
import type { RankData } from '../page.ts';
import { Empty, HowToRead, Tip, type TipContent } from '../parts.tsx';
import { useState } from 'preact/hooks';
import { duration, say } from '../text.ts';
import { IDLE, fillOf } from '../theme.ts';
import { Section } from './section.tsx';
import { Legend } from './steps.tsx';

const BAR = 22;
const LEFT = 90;
const WIDTH = 1000;
const RIGHT = 230;

export function RanksView({ ranks, comm, late }: { ranks: RankData | null; comm: Record<string, unknown> | null; late: number[] }) {
  const [tip, setTip] = useState<TipContent | null>(null);
  if (!ranks && !comm) return <Empty>{say('page.ranks.empty')}</Empty>;
  const most = Math.max(1, ...(ranks?.total_ns ?? []));
  return (
    <div class="ranks">
      <div class="bar"><HowToRead view="ranks" /></div>
      {ranks && (
        <figure>
          <figcaption>{say('page.ranks.title')}</figcaption>
          <Legend causes={ranks.causes} />
          <svg viewBox={`0 0 ${WIDTH + LEFT + RIGHT} ${ranks.numbers.length * BAR + 4}`} width="100%" role="img" aria-label={say('page.ranks.title')}>
            {ranks.numbers.map((number, i) => {
              let x = LEFT;
              return (
                <g
                  onPointerMove={event => setTip({ title: say('page.ranks.rank', { rank: number }), lines: ranks.causes.map((cause, k) => [cause, ranks.ns[k][i]] as const).filter(one => one[1] > 0).map(([cause, ns]) => `${say(`cause.${cause}`)} ${duration(ns)}`), x: event.clientX, y: event.clientY })}
                  onPointerLeave={() => setTip(null)}
                >
                  <text class="axis" x={LEFT - 8} y={i * BAR + 15} text-anchor="end">{say('page.ranks.rank', { rank: number })}</text>
                  {ranks.causes.map((cause, k) => {
                    const wide = (ranks.ns[k][i] / most) * WIDTH;
                    const left = x;
                    x += wide;
                    return wide > 0.1 ? <rect x={left} y={i * BAR + 2} width={wide} height={BAR - 5} fill={fillOf(cause)} opacity={IDLE.has(cause) ? 0.6 : 1} /> : null;
                  })}
                  {late.includes(number) && <rect class="outlier" x={LEFT} y={i * BAR + 2} width={x - LEFT} height={BAR - 5} />}
                  <text class="axis" x={x + 6} y={i * BAR + 15}>{duration(ranks.total_ns[i])}{late.includes(number) ? ` · ${say('page.ranks.late')}` : ''}</text>
                </g>
              );
            })}
          </svg>
        </figure>
      )}
      <Tip tip={tip} />
      {comm && <Section content={comm} />}
    </div>
  );
}
