// The decoder against blocks that Python packed (tests/web/test_packed.py writes fixtures.json and checks it is current).
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fromBase64, gunzip, unpack } from '../src/decode.ts';

type Fixture = { block: string; meta: unknown; columns: Record<string, number[]> };
const fixtures = JSON.parse(readFileSync('test/fixtures.json', 'utf8')) as Record<string, Fixture>;

for (const [name, fixture] of Object.entries(fixtures)) {
  test(`a block packed by Python decodes to the same numbers: ${name}`, async () => {
    const { meta, columns } = unpack(await gunzip(fromBase64(fixture.block)));
    assert.deepEqual(meta, fixture.meta);
    assert.deepEqual(Object.keys(columns), Object.keys(fixture.columns));
    for (const [column, values] of Object.entries(fixture.columns)) assert.deepEqual([...columns[column]], values, column);
  });
}
