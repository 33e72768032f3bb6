// What Python embeds beside the packed blocks: texts, tables, sections. Written by src/uncork/render/html.py.
import type { Catalogue, Message } from './text.ts';

export type Language = 'en' | 'zh';

/** How a finding is found in the timeline: causes of the ledger, or names of events; on a rank, where it names one. */
export type FindingMatch = { causes: string[]; names: string[]; rank: number | null };

export type Value = number | string | boolean | null;

export type TableData = { id: string; columns: string[]; rows: Value[][]; marks: Record<string, string>; left_out: number };

export type StepsData = { numbers: (number | string)[]; phases: string[]; causes: string[]; ns: number[][]; total_ns: number[] };

export type RankData = { numbers: number[]; causes: string[]; ns: number[][]; total_ns: number[] };

type Change = { name: string; before_ns: number; after_ns: number };

export type CompareData = {
  sentence: Record<Language, string>;
  notes: Record<Language, string>;
  ledger: Change[];
  operators: Change[];
  findings: Record<'gone' | 'new' | 'kept', Record<Language, string[]>>;
};

export type Fact = { label: Message; value: Message | Value };

export type PageData = {
  texts: Record<Language, Catalogue>;
  finding_titles: Record<Language, string[]>;
  findings: FindingMatch[];
  tables: TableData[];
  /** Kernels' names without what the compiler added, where that differs. */
  short_names: Record<string, string>;
  steps: Record<string, StepsData>;
  memory: Record<string, unknown> | null;
  comm: Record<string, unknown> | null;
  ranks: RankData | null;
  late_ranks: number[];
  /** Ranks whose timeline, flame graph and steps are here: with most, median and least time of their own. */
  shown_ranks: number[];
  /** Ranks that the page had no room for. */
  ranks_left_out: number[];
  several_ranks: boolean;
  /** Whether a server stands behind the page that has what was left out. */
  served: boolean;
  /** View to open at, or empty: then at the first screen. */
  view: string;
  /** What to type to see this page again, or empty. */
  command: string;
  about: { title: Message; facts: Fact[] }[];
  compare: CompareData | null;
};
