// Operators, kernels, Python functions, collectives: one table at a time.
import { useState } from 'preact/hooks';
import { readPlace, writePlace } from '../link.ts';
import type { TableData } from '../page.ts';
import { Empty, HowToRead } from '../parts.tsx';
import { say } from '../text.ts';
import { Grid } from './grid.tsx';

const GROUPS = ['name', 'module', 'place', 'location', 'shapes', 'file', 'category', 'class', 'rank'];

export function TablesView({ tables, showInTimeline }: { tables: TableData[]; showInTimeline: ((name: string) => void) | null }) {
  const [id, setId] = useState(readPlace().table ?? tables[0]?.id);
  const table = tables.find(one => one.id === id) ?? tables[0];
  if (!table) return <Empty>{say('page.tables.empty')}</Empty>;
  const name = table.columns.findIndex(column => column === 'name' || column === 'op' || column === 'kernel');
  const choose = (one: string) => {
    setId(one);
    writePlace({ table: one });
  };
  const rules = [...new Set(Object.values(table.marks))];
  return (
    <div class="tables">
      <div class="bar">
        <div class="pills" role="group" aria-label={say('page.tab.tables')}>
          {tables.map(one => <button aria-pressed={one.id === table.id} onClick={() => choose(one.id)}>{say(`page.table.${one.id}`)} <small>{one.rows.length}</small></button>)}
        </div>
        <HowToRead view="tables" />
      </div>
      {rules.length > 0 && <div class="sentences">{rules.map(rule => <p><b class="note">{say(`${rule}.short`)}</b> {say(rule)}</p>)}</div>}
      <Grid
        key={table.id} id={table.id} columns={table.columns} rows={table.rows} marks={table.marks}
        groups={table.columns.filter(column => GROUPS.includes(column))}
        pick={showInTimeline && name >= 0 && table.id !== 'functions' ? row => showInTimeline(String(row[name])) : undefined}
        pickLabel={say('page.in_timeline')}
      />
      {table.left_out > 0 && <p class="muted">{say('page.tables.left_out', { count: table.left_out })}</p>}
    </div>
  );
}
