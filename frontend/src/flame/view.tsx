// The flame graph with its choices, call-outs and details.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { readPlace, writePlace } from '../link.ts';
import { Choice, Empty, Fact, HowToRead, SavePng, Tip, type TipContent } from '../parts.tsx';
import { onPrint } from '../theme.ts';
import { bytes, count, duration, say, share, told } from '../text.ts';
import { FlameCanvas, connectFlame } from './canvas.ts';
import { type Flame, shownName, totals } from './layout.ts';

type Props = { flame: Flame; inTimeline: Set<string> | null; showInTimeline: (name: string) => void; stamp: string };

export function FlameView({ flame, inTimeline, showInTimeline, stamp }: Props) {
  const place = readPlace();
  const canvas = useRef<HTMLCanvasElement>(null);
  const view = useRef<FlameCanvas | null>(null);
  const [treeId, setTree] = useState(flame.trees.some(tree => tree.id === place.tree) ? place.tree : flame.trees[0]?.id);
  const [weight, setWeight] = useState(place.weight ?? '');
  const [heavy, setHeavy] = useState(place.order !== 'time');
  const [tip, setTip] = useState<TipContent | null>(null);
  const [selected, setSelected] = useState<number | null>(null);

  const tree = flame.trees.find(one => one.id === treeId) ?? flame.trees[0];
  const weights = useMemo(() => (tree ? Object.keys(tree.own).filter(id => some(tree.own[id])) : []), [tree]);
  const shown = weights.includes(weight) ? weight : weights[0];
  const total = useMemo(() => (tree && shown ? totals(tree.parent, tree.own[shown]) : null), [tree, shown]);
  const whole = useMemo(() => (tree && total ? rootsTotal(tree.parent, total) : 1), [tree, total]);
  const spell = shown === 'bytes' ? bytes : duration;

  useEffect(() => {
    if (!canvas.current) return undefined;
    const made = new FlameCanvas(canvas.current, flame, {
      select: setSelected,
      hover: (node, x, y) => setTip(node === null ? null : tipFor(made, node, x, y)),
    });
    view.current = made;
    const disconnect = connectFlame(made);
    const unprint = onPrint(() => {
      made.restyle();
      made.draw();
    });
    return () => {
      unprint();
      disconnect();
    };
  }, [flame]);

  useEffect(() => {
    if (tree && shown) view.current?.set(tree, shown, heavy);
    view.current?.resize();
    setSelected(null);
    writePlace({ tree: tree?.id, weight: shown, order: heavy ? undefined : 'time' });
  }, [flame, tree, shown, heavy]);

  useEffect(() => view.current?.restyle(), [stamp]);

  if (!tree || !shown || !total) return <Empty>{say('page.flame.empty')}</Empty>;

  function tipFor(made: FlameCanvas, node: number, x: number, y: number): TipContent {
    const at = made.icicle.at[node];
    const value = made.icicle.total[node];
    const lines = [`${spell(value)} · ${share(value / made.whole)}`, flame.meta.places[made.tree.place[node]]];
    return { title: shownName(flame.meta.names[made.tree.name[node]]), lines: at < 0 ? [] : lines.filter(Boolean), x, y };
  }

  function find(text: string) {
    const made = view.current;
    if (!made) return;
    const wanted = text.toLowerCase();
    made.found = wanted ? Uint8Array.from(flame.meta.names, name => Number(name.toLowerCase().includes(wanted))) : null;
    made.redraw();
  }

  const callouts = flame.meta.callouts.filter(one => one.tree === tree.id);
  return (
    <div class="flame">
      <div class="bar">
        <Choice label={say('page.flame.by')} value={tree.id} set={setTree} options={flame.trees.map(one => [one.id, say(`page.flame.tree.${one.id}`)])} />
        <Choice label={say('page.flame.weight')} value={shown} set={setWeight} options={weights.map(id => [id, say(`page.flame.weight.${id}`)])} />
        <Choice label={say('page.flame.order')} value={heavy ? 'heavy' : 'time'} set={id => setHeavy(id === 'heavy')} options={[['heavy', say('page.flame.order.heavy')], ['time', say('page.flame.order.time')]]} />
        <input type="search" placeholder={say('page.search')} aria-label={say('page.search')} onInput={event => find(event.currentTarget.value)} />
        <SavePng canvas={() => canvas.current} name="flame" />
        <HowToRead view="flame" />
      </div>
      {(callouts.length > 0 || flame.meta.deep) && (
        <div class="sentences">
          {flame.meta.deep && <p class="muted">{say('page.flame.deep')}</p>}
          {callouts.map(({ node, message }) => (
            <p>{told(message)} <button class="link" onClick={() => { view.current?.select(node); view.current?.zoomTo(null); }}>{say('page.show')}</button></p>
          ))}
        </div>
      )}
      <canvas ref={canvas} class="lanes flame-lanes" tabIndex={0} role="application" aria-label={say('page.tab.flame')} />
      <Tip tip={tip} />
      <div class="details" aria-live="polite">
        {selected === null ? <p class="muted">{say('page.flame.click')}{tree.folded > 0 ? ` ${say('page.flame.folded', { count: tree.folded })}` : ''}</p> : (
          <section>
            <h3><bdi>{shownName(flame.meta.names[tree.name[selected]])}</bdi></h3>
            <dl>
              {flame.meta.places[tree.place[selected]] && <Fact label={say('column.place')} value={flame.meta.places[tree.place[selected]]} copied />}
              <div><dt>{say('column.total')}</dt><dd>{spell(total[selected])} · {share(total[selected] / whole)}</dd></div>
              <div><dt>{say('column.self')}</dt><dd>{spell(tree.own[shown][selected])} · {share(tree.own[shown][selected] / whole)}</dd></div>
              <div><dt>{say('column.calls')}</dt><dd>{count(tree.calls[selected])}</dd></div>
            </dl>
            {inTimeline?.has(flame.meta.names[tree.name[selected]])
              ? <p><button class="small" onClick={() => showInTimeline(flame.meta.names[tree.name[selected]])}>{say('page.in_timeline')}</button></p>
              : <p class="muted">{say('page.flame.not_in_timeline')}</p>}
          </section>
        )}
      </div>
    </div>
  );
}

function rootsTotal(parent: Int32Array, total: Float64Array): number {
  let sum = 0;
  parent.forEach((above, node) => (sum += above < 0 ? total[node] : 0));
  return sum || 1;
}

function some(values: ArrayLike<number>): boolean {
  for (let i = 0; i < values.length; i++) if (values[i] > 0) return true;
  return false;
}
