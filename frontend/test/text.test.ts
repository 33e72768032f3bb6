// Numbers are spelt as Python spells them; placeholders are filled in one pass.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { quantity, say, shorten, shortName, speak } from '../src/text.ts';
import { statistics } from '../src/trace.ts';

const spelt = JSON.parse(readFileSync('test/spelt.json', 'utf8')) as [string, number, string][];

test('every quantity is spelt as units.py spells it', () => {
  assert.ok(spelt.length > 30);
  for (const [name, value, text] of spelt) assert.equal(quantity(name, value), text, `${name} ${value}`);
});

test('a value with braces in it is no placeholder', () => {
  speak({ greeting: '{name} takes {dur_ns}, {unknown}' });
  assert.equal(say('greeting', { name: '{dur_ns}', dur_ns: 1500 }), '{dur_ns} takes 1.50 µs, {unknown}');
  assert.equal(say('no.such.key'), 'no.such.key');
});

test('a kernel is called by its short name, anything else by its own', () => {
  shorten({ 'void f<float>(int)': 'f<float>' });
  assert.equal(shortName('void f<float>(int)'), 'f<float>');
  assert.equal(shortName('constructor'), 'constructor');
});

test('statistics by nearest rank', () => {
  assert.deepEqual(statistics([4, 1, 3, 2]), { count: 4, sum: 10, mean: 2.5, min: 1, max: 4, p50: 2, p99: 4 });
});
