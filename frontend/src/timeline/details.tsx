// The pane below the timeline: one event, or a measured stretch.
import { useMemo } from 'preact/hooks';
import { CopyButton, Fact } from '../parts.tsx';
import { bytes, count, duration, say, share, shortName, told } from '../text.ts';
import { type Statistics, type Trace, launchOf, launchedBy, placeOf } from '../trace.ts';
import type { Span } from './canvas.ts';
import { alikeUse, nameUse, trackUse } from './measure.ts';

export function EventDetails({ trace, event, select }: { trace: Trace; event: number; select: (event: number) => void }) {
  const name = trace.meta.names[trace.name[event]];
  const alike = useMemo(() => alikeUse(trace, trace.name[event]), [trace, event]);
  const place = placeOf(trace, event);
  const { module, place: source, shapes, note } = trace.detailOf(event);
  const row = place?.track.rows[place.depth];
  const gap = row && event > row.first ? trace.start[event] - trace.start[event - 1] - trace.dur[event - 1] : null;
  const launcher = launchOf(trace, event);
  const launched = launchedBy(trace, event);
  const label = name.startsWith('cause.') ? say(name) : name;
  return (
    <section class="event">
      <h3><bdi>{label}</bdi></h3>
      <dl>
        <Fact label={say('page.event.duration')} value={duration(trace.dur[event])} />
        <Fact label={say('page.event.start')} value={duration(trace.start[event])} />
        {gap !== null && <Fact label={say('page.event.gap')} value={duration(Math.max(0, gap))} />}
        {place && <Fact label={say('page.event.track')} value={told(place.track.meta.label)} />}
        {module && <Fact label={say('column.module')} value={module} />}
        {source && <Fact label={say('column.place')} value={source} copied />}
        {shapes && <Fact label={say('column.shapes')} value={shapes} />}
        {note && <Fact label={say('page.event.note')} value={note} />}
        {launcher >= 0 && (
          <Linked label={say('page.event.launched_by')} trace={trace} event={launcher} select={select} extra={`+${duration(trace.start[event] - trace.start[launcher])}`} />
        )}
        {launched.length > 0 && (
          <Linked label={say('page.event.launches')} trace={trace} event={launched[0]} select={select} extra={launched.length > 1 ? `+ ${count(launched.length - 1)}` : ''} />
        )}
      </dl>
      <Figures title={say('page.event.alike')} figures={alike} />
      {name.startsWith('cause.') && <p class="muted">{say(`${name}.means`)}</p>}
    </section>
  );
}

function Linked({ label, trace, event, select, extra }: { label: string; trace: Trace; event: number; select: (event: number) => void; extra: string }) {
  return (
    <div>
      <dt>{label}</dt>
      <dd><button class="link" onClick={() => select(event)}><bdi>{shortName(trace.meta.names[trace.name[event]])}</bdi></button> {extra}</dd>
    </div>
  );
}

function Figures({ title, figures }: { title: string; figures: Statistics }) {
  const { count: n, sum, mean, min, p50, p99, max } = figures;
  return (
    <p class="figures">
      {title}{say('page.colon')}<b>{count(n)}</b> × · Σ <b>{duration(sum)}</b> · {say('page.figure.mean')} {duration(mean)} · {say('page.figure.min')} {duration(min)} · p50 {duration(p50)} · p99 {duration(p99)} · {say('page.figure.max')} {duration(max)}
    </p>
  );
}

export function SpanDetails({ trace, span, pick, zoom }: { trace: Trace; span: Span; pick: (name: number) => void; zoom: () => void }) {
  const tracks = useMemo(() => trackUse(trace, span.from, span.to), [trace, span]);
  const names = useMemo(() => nameUse(trace, span.from, span.to), [trace, span]);
  const length = span.to - span.from;
  const rows = () => [
    ['name', 'count', 'sum_ns', 'mean_ns', 'min_ns', 'p50_ns', 'p99_ns', 'max_ns'].join(','),
    ...names.map(one => [JSON.stringify(trace.meta.names[one.name]), one.count, one.sum, one.mean, one.min, one.p50, one.p99, one.max].join(',')),
  ].join('\n');
  return (
    <section class="span">
      <h3>
        {say('page.span.title', { span_ns: length, from_ns: span.from })}{' '}
        <button class="small" onClick={zoom}>{say('page.span.zoom')}</button>
        <CopyButton text={rows} label="CSV" />
      </h3>
      <p class="figures">
        {tracks.map(use => (
          <span>
            {told(use.track.meta.label)}{say('page.colon')}{say('page.span.use', { count: use.count, busy_ns: use.busyNs, share: use.busyNs / length, idle_ns: Math.max(0, length - use.busyNs) })}
          </span>
        ))}
      </p>
      {trace.curves.map(curve => <CurveFigures curve={curve} span={span} />)}
      {names.length > 0 && <div class="scroll short" tabIndex={0} role="region" aria-label={say('page.span.names')}>
        <table>
          <thead>
            <tr>{['name', 'calls', 'sum', 'mean', 'min', 'p50', 'p99', 'max'].map(id => <th scope="col" class={id === 'name' ? '' : 'n'}>{say(`page.figure.${id}`)}</th>)}</tr>
          </thead>
          <tbody>
            {names.map(one => (
              <tr key={one.name}>
                <td><button class="link" title={trace.meta.names[one.name]} onClick={() => pick(one.name)}><bdi>{shortName(trace.meta.names[one.name])}</bdi></button></td>
                <td class="n">{count(one.count)}</td>
                {[one.sum, one.mean, one.min, one.p50, one.p99, one.max].map(value => <td class="n">{duration(value)}</td>)}
              </tr>
            ))}
          </tbody>
        </table>
      </div>}
    </section>
  );
}

function CurveFigures({ curve, span }: { curve: Trace['curves'][number]; span: Span }) {
  const spell = curve.meta.unit.endsWith('bytes') ? bytes : curve.meta.unit.endsWith('share') ? share : count;
  const parts = curve.series.map(series => {
    let low = Number.POSITIVE_INFINITY;
    let high = Number.NEGATIVE_INFINITY;
    for (let i = 0; i < series.time.length; i++) {
      if (series.time[i] < span.from || series.time[i] > span.to) continue;
      low = Math.min(low, series.value[i]);
      high = Math.max(high, series.value[i]);
    }
    return high >= low ? `${say(series.label)} ${spell(low)} – ${spell(high)}` : '';
  }).filter(Boolean);
  return parts.length ? <p class="figures">{told(curve.meta.label)}{say('page.colon')}{parts.join(' · ')}</p> : null;
}
