// One bar per step, stacked by cause; warm-up greyed, outliers outlined.
import { useMemo, useState } from 'preact/hooks';
import type { StepsData } from '../page.ts';
import { Empty, HowToRead, Swatch, Tip, type TipContent } from '../parts.tsx';
import { duration, say, share } from '../text.ts';
import { IDLE, fillOf } from '../theme.ts';
import { niceTick, ticks } from '../ticks.ts';
import { Grid } from './grid.tsx';

const HEIGHT = 260;
const LEFT = 64;
const BELOW = 26;

export function StepsView({ steps, open, stamp }: { steps: StepsData | null; open: (step: number) => void; stamp: string }) {
  const [tip, setTip] = useState<TipContent | null>(null);
  if (!steps || !steps.total_ns.length) return <Empty>{say('page.steps.empty')}</Empty>;
  const { numbers, phases, causes, ns, total_ns: total } = steps;
  const most = Math.max(...total);
  const tick = niceTick(most / 4);
  const scale = HEIGHT / (Math.ceil(most / tick) * tick);
  const wide = Math.max(5, Math.min(90, Math.floor(900 / total.length)));
  const width = LEFT + wide * total.length + 12;
  const every = Math.max(1, Math.ceil(34 / wide));
  const fill = (cause: string) => (IDLE.has(cause) ? `url(#idle-${cause})` : fillOf(cause));
  const used = causes.filter(cause => IDLE.has(cause));
  const columns = ['step', 'phase', 'total_ns', ...causes.map(cause => `cause.${cause}_ns`)];
  return (
    <div class="steps">
      <div class="bar"><HowToRead view="steps" /></div>
      <figure>
        <figcaption>{say('page.steps.title')}</figcaption>
        <div class="beside">
        <div class="scroll-x" tabIndex={0} role="group" aria-label={say('page.steps.title')}>
          <svg width={width} height={HEIGHT + BELOW + 10} role="img" aria-label={say('page.steps.title')}>
            <defs>
              {used.map(cause => (
                <pattern id={`idle-${cause}`} width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
                  <rect width="6" height="6" fill={fillOf(cause)} />
                  <line x1="0" y1="0" x2="0" y2="6" class="hatch" />
                </pattern>
              ))}
            </defs>
            {ticks(most, tick).map(value => (
              <g>
                <line class="grid" x1={LEFT} x2={width} y1={8 + HEIGHT - value * scale} y2={8 + HEIGHT - value * scale} />
                <text class="axis" x={LEFT - 8} y={12 + HEIGHT - value * scale} text-anchor="end">{duration(value)}</text>
              </g>
            ))}
            {total.map((value, step) => {
              let y = 8 + HEIGHT;
              const x = LEFT + step * wide;
              const lines = causes.map((cause, k) => [cause, ns[k][step]] as const).filter(([, time]) => time > 0).sort((a, b) => b[1] - a[1]).slice(0, 7);
              return (
                <g
                  class={`step ${phases[step]}`} onClick={() => open(step)}
                  onPointerMove={event => setTip({ title: say('page.steps.step', { number: String(numbers[step]), total_ns: value }), lines: [say(`page.phase.${phases[step]}`), ...lines.map(([cause, time]) => `${say(`cause.${cause}`)} ${duration(time)}`)], x: event.clientX, y: event.clientY })}
                  onPointerLeave={() => setTip(null)}
                >
                  {causes.map((cause, k) => {
                    const tall = ns[k][step] * scale;
                    y -= tall;
                    return tall > 0.2 ? <rect x={x + 1} y={y} width={wide - 2} height={tall} fill={fill(cause)} /> : null;
                  })}
                  {phases[step] === 'outlier' && <rect class="outlier" x={x + 0.5} y={8 + HEIGHT - value * scale} width={wide - 1} height={value * scale} />}
                  {step % every === 0 && <text class="axis" x={x + wide / 2} y={HEIGHT + 24} text-anchor="middle">{numbers[step]}</text>}
                </g>
              );
            })}
          </svg>
        </div>
        <Means steps={steps} />
        </div>
      </figure>
      <Tip tip={tip} />
      <StepsTable columns={columns} steps={steps} open={open} stamp={stamp} />
    </div>
  );
}

function StepsTable({ columns, steps, open, stamp }: { columns: string[]; steps: StepsData; open: (step: number) => void; stamp: string }) {
  const rows = useMemo(() => steps.total_ns.map((total, i) => [String(steps.numbers[i]), say(`page.phase.${steps.phases[i]}`), total, ...steps.ns.map(one => one[i])]), [steps, stamp]);
  return <Grid id="steps" columns={columns} rows={rows} pick={row => open(steps.numbers.findIndex(number => String(number) === row[0]))} pickLabel={say('page.in_timeline')} />;
}

/** The legend, each cause with its mean over the steps that are neither warm-up nor outlier. */
function Means({ steps }: { steps: StepsData }) {
  const typical = steps.phases.map((phase, i) => [phase, i] as const).filter(([phase]) => phase === 'steady').map(([, i]) => i);
  const taken = typical.length ? typical : steps.phases.map((_, i) => i);
  const mean = (values: number[]) => taken.reduce((sum, i) => sum + values[i], 0) / taken.length;
  const whole = mean(steps.total_ns) || 1;
  return (
    <section class="means">
      <h3>{say('page.steps.mean', { steps: taken.length })} <small>{duration(whole)}</small></h3>
      <ul>
        {steps.causes.map((cause, k) => [cause, mean(steps.ns[k])] as const).map(([cause, ns]) => (
          <li><Swatch colour={fillOf(cause)} idle={IDLE.has(cause)} /><span>{say(`cause.${cause}`)}</span><b>{duration(ns)}</b><b>{share(ns / whole)}</b></li>
        ))}
      </ul>
    </section>
  );
}

export function Legend({ causes }: { causes: string[] }) {
  return (
    <p class="legend">
      {causes.map(cause => <span><Swatch colour={fillOf(cause)} idle={IDLE.has(cause)} />{say(`cause.${cause}`)}</span>)}
    </p>
  );
}
