// The density of a row stays true at every zoom: the drawn area is the busy time.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Events, firstEndingAfter, fitting, segments } from '../src/lanes.ts';

/** Returns events laid out one after another from pairs (gap before, duration). */
function row(pairs: [number, number][]): Events {
  const start = new Float64Array(pairs.length);
  const dur = new Float64Array(pairs.length);
  const before = new Float64Array(pairs.length + 1);
  let at = 0;
  pairs.forEach(([gap, length], i) => {
    start[i] = at + gap;
    dur[i] = length;
    before[i + 1] = before[i] + length;
    at = start[i] + length;
  });
  return { start, dur, name: new Uint8Array(pairs.length), before };
}

function area(events: Events, from: number, to: number, width: number): number {
  let sum = 0;
  segments(events, { first: 0, last: events.start.length }, from, to, width, piece => (sum += piece.width * piece.share));
  return sum;
}

test('three events worked out by hand: one wide, two within a pixel', () => {
  // 10 pixels for 100 ns: [5, 45) is 4 pixels wide; [62, 64) and [65, 66) lie in pixel 6 and fill 0.3 of it.
  const pieces: number[][] = [];
  segments(row([[5, 40], [17, 2], [1, 1]]), { first: 0, last: 3 }, 0, 100, 10, piece => pieces.push([piece.x, piece.width, piece.share]));
  assert.deepEqual(pieces, [[0.5, 4, 1], [6, 1, 0.3]]);
});

test('a small event that crosses a pixel border counts in both pixels', () => {
  // [8, 14) at 10 ns a pixel: 2 ns in pixel 0, 4 ns in pixel 1.
  const pieces: number[][] = [];
  segments(row([[8, 6]]), { first: 0, last: 1 }, 0, 100, 10, piece => pieces.push([piece.x, piece.share]));
  assert.deepEqual(pieces, [[0, 0.2], [1, 0.4]]);
});

test('the drawn area equals the busy time for random rows and zooms', () => {
  let seed = 1;
  const random = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
  for (let round = 0; round < 200; round++) {
    const pairs = Array.from({ length: 1 + Math.floor(random() * 400) }, (): [number, number] => [Math.floor(random() ** 3 * 50), Math.floor(random() ** 4 * 400)]);
    const events = row(pairs);
    const last = pairs.length - 1;
    const end = events.start[last] + events.dur[last] + 50;
    const width = 1 + Math.floor(random() * 300);
    const busy = events.before[pairs.length];
    // The last pixel's spill may fall outside only where the row ends beyond the strip, which it does not here.
    assert.ok(Math.abs(area(events, 0, end, width) - (busy / end) * width) < 1e-6 * width + 1e-6, `round ${round}`);
  }
});

test('the first event that ends after a moment is found from any lower bound', () => {
  const events = row([[0, 10], [0, 10], [5, 10], [0, 1]]);
  assert.equal(firstEndingAfter(events, { first: 0, last: 4 }, 10), 1);
  assert.equal(firstEndingAfter(events, { first: 0, last: 4 }, 0), 0);
  assert.equal(firstEndingAfter(events, { first: 0, last: 4 }, 36), 4);
  assert.equal(firstEndingAfter(events, { first: 0, last: 4 }, 26, 1), 2);
});

test('a text is cut to its width, wide characters counted as wide', () => {
  assert.equal(fitting('aten::mm', 60), 'aten::mm');
  assert.equal(fitting('aten::convolution', 62), 'aten::con…');
  assert.equal(fitting('aten::mm', 10), '');
  assert.equal(fitting('等待数据', 44), '等待数据');
});
