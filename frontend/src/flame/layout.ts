// A call tree laid out as an icicle: one row per depth, x = summed weight.
import type { Block, Column } from '../decode.ts';
import type { Events, Row } from '../lanes.ts';
import { type Message, say } from '../text.ts';

export type Callout = { tree: string; node: number; message: Message };

export type FlameMeta = {
  names: string[];
  places: string[];
  categories: string[];
  trees: { id: string; nodes: number; weights: string[]; folded: number }[];
  callouts: Callout[];
  /** Whether the trees are of the recorder's deep window, which is not the timeline's. */
  deep: boolean;
};

/** Returns what a name is shown as: keys of the catalogue in the reader's language, all others as they are. */
export function shownName(name: string): string {
  return name.startsWith('page.') ? say(name) : name;
}

export type Tree = {
  id: string;
  depth: ArrayLike<number>;
  parent: Int32Array;
  name: ArrayLike<number>;
  place: ArrayLike<number>;
  calls: ArrayLike<number>;
  /** Weight → value of each node without its children. */
  own: Record<string, ArrayLike<number>>;
  folded: number;
};

export type Flame = { meta: FlameMeta; trees: Tree[]; category: Column };

export type Icicle = Events & {
  rows: Row[];
  /** Node of each event. */
  node: Uint32Array;
  /** Place of each node among the events, -1 where its weight is 0. */
  at: Int32Array;
  total: Float64Array;
};

/** Returns the trees in a block. */
export function readFlame({ meta, columns }: Block<FlameMeta>): Flame {
  const trees = meta.trees.map((tree, index) => {
    const of = (name: string) => columns[`t${index}_${name}`];
    const depth = of('depth');
    return {
      id: tree.id, depth, parent: parents(depth), name: of('name'), place: of('place'), calls: of('calls'), folded: tree.folded,
      own: Object.fromEntries(tree.weights.map(weight => [weight, of(weight)])),
    };
  });
  return { meta, trees, category: columns.category };
}

/** Returns each node's parent from the depths in pre-order; -1 for roots. */
export function parents(depth: ArrayLike<number>): Int32Array {
  const out = new Int32Array(depth.length);
  const open: number[] = [];
  for (let i = 0; i < depth.length; i++) {
    out[i] = depth[i] > 0 ? open[depth[i] - 1] : -1;
    open[depth[i]] = i;
  }
  return out;
}

/** Returns each node's value with its descendants'. */
export function totals(parent: Int32Array, own: ArrayLike<number>): Float64Array {
  const total = Float64Array.from(own);
  for (let i = parent.length - 1; i >= 0; i--) if (parent[i] >= 0) total[parent[i]] += total[i];
  return total;
}

/** Returns the icicle of a tree by a weight; `heavy` puts the largest child leftmost, else the order of the calls stays. */
export function layOutFlame(tree: Tree, weight: string, heavy: boolean): Icicle {
  const { parent, depth } = tree;
  const n = parent.length;
  const total = totals(parent, tree.own[weight]);
  const left = new Float64Array(n);
  const used = new Float64Array(n + 1); // last: the roots'
  for (const i of heavy ? byWeight(parent, total) : parent.keys()) {
    const above = parent[i] < 0 ? n : parent[i];
    left[i] = (parent[i] < 0 ? 0 : left[parent[i]]) + used[above];
    used[above] += total[i];
  }
  const levels: number[][] = [];
  for (let i = 0; i < n; i++) if (total[i] > 0) (levels[depth[i]] ??= []).push(i);
  const count = levels.reduce((sum, level) => sum + level.length, 0);
  const icicle: Icicle = {
    rows: [], total, at: new Int32Array(n).fill(-1), node: new Uint32Array(count), name: new Uint32Array(count),
    start: new Float64Array(count), dur: new Float64Array(count), before: new Float64Array(count + 1),
  };
  let k = 0;
  for (const level of levels) {
    const first = k;
    for (const i of level.sort((a, b) => left[a] - left[b])) {
      icicle.node[k] = i;
      icicle.at[i] = k;
      (icicle.name as Uint32Array)[k] = tree.name[i];
      icicle.start[k] = left[i];
      icicle.dur[k] = total[i];
      icicle.before[k + 1] = icicle.before[k] + total[i];
      k++;
    }
    icicle.rows.push({ first, last: k });
  }
  return icicle;
}

/** Returns the nodes in an order in which parents precede children and heavier siblings precede lighter ones. */
function byWeight(parent: Int32Array, total: Float64Array): Uint32Array {
  const order = Uint32Array.from(parent.keys());
  // Parents have smaller numbers than their children; the layout only needs siblings sorted and parents placed first,
  // so sorting by depth-free weight works: a parent is never lighter than its child, ties go by number.
  return order.sort((a, b) => total[b] - total[a] || a - b);
}
