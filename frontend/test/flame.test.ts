// The icicle's layout against a tree worked out by hand.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Tree, layOutFlame, parents, totals } from '../src/flame/layout.ts';

// main ─ a (own 1) ─ b (own 2)
//      └ c (own 5)
const tree: Tree = {
  id: 'stack', depth: [0, 1, 2, 1], parent: parents([0, 1, 2, 1]), name: [0, 1, 2, 3], place: [0, 0, 0, 0], calls: [1, 1, 1, 1],
  own: { self_ns: [0, 1, 2, 5], bytes: [0, 0, 7, 0] }, folded: 0,
};

test('parents follow from depths in pre-order', () => {
  assert.deepEqual([...tree.parent], [-1, 0, 1, 0]);
});

test('totals add what is below', () => {
  assert.deepEqual([...totals(tree.parent, tree.own.self_ns)], [8, 3, 2, 5]);
});

test('the heaviest child stands left; in the order of the calls the first one does', () => {
  const heavy = layOutFlame(tree, 'self_ns', true);
  assert.deepEqual(heavy.rows, [{ first: 0, last: 1 }, { first: 1, last: 3 }, { first: 3, last: 4 }]);
  assert.deepEqual([...heavy.node], [0, 3, 1, 2]);
  assert.deepEqual([...heavy.start], [0, 0, 5, 5]);
  const called = layOutFlame(tree, 'self_ns', false);
  assert.deepEqual([...called.node], [0, 1, 3, 2]);
  assert.deepEqual([...called.start], [0, 0, 3, 0]);
});

test('nodes without the weight are not drawn', () => {
  const icicle = layOutFlame(tree, 'bytes', true);
  assert.deepEqual([...icicle.node], [0, 1, 2]);
  assert.equal(icicle.at[3], -1);
});
