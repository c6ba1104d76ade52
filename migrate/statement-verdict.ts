import { MANY_ROWS } from "./many-rows.ts";
import type { StatementMeasures } from "./measure-statement.ts";
import { withoutStrings } from "./split-statements.ts";

/** The sessions that a statement would block. `brief`: for a moment, because little is done while it has its locks. */
type Verdict = "not rehearsed" | "safe" | "brief" | "holds writes" | "holds reads" | "rewrites";

export type StatementVerdict = {
  readonly verdict: Verdict;
  /** A better form of the statement; null if there is none. */
  readonly safeForm: string | null;
};

/** `line` is the line in the statement's file or script. */
export type JudgedStatement = StatementMeasures & StatementVerdict & { readonly line: number; readonly sql: string };

/** True if others wait for long. */
export function holdsOthers({ verdict }: Pick<StatementVerdict, "verdict">): boolean {
  return verdict === "holds writes" || verdict === "holds reads" || verdict === "rewrites";
}

const SLOW_MS = 1000;

/** A comment in statements that lock rows of small tables only: in a copy without rows, each table counts as large. */
export const FILLS_SMALL_TABLES = "-- Small tables are filled here.";

/** Statements that make new files, like a rewrite of a table, but read no rows. */
const EMPTIES = /^(truncate\b|refresh\b.*\bwith\s+no\s+data$)/is;

/** The work of a statement, on any object. */
type StatementWork = { readonly read: number; readonly written: number; readonly milliseconds: number };

const NO_WORK: StatementWork = { read: 0, written: 0, milliseconds: 0 };

/** The work under the locks of a transaction since a statement was last found to hold others. */
type WorkUnderLocks = { readonly readsWait: StatementWork; readonly writesWait: StatementWork };

export const NO_WORK_UNDER_LOCKS: WorkUnderLocks = { readsWait: NO_WORK, writesWait: NO_WORK };

/** Judges a statement. `earlier` is the work of the earlier statements of its transaction. */
export function judgeStatement(
  sql: string,
  measured: StatementMeasures,
  earlier = NO_WORK_UNDER_LOCKS,
): StatementVerdict & { readonly work: WorkUnderLocks } {
  const measures = EMPTIES.test(sql) ? { ...measured, rewritten: [] } : measured;
  const work = addWork(earlier, measures);
  const verdict = chooseVerdict(measures, work);
  if (!holdsOthers({ verdict })) return { verdict, safeForm: null, work };
  const isLate = [...measures.locks, ...measures.lockedRows].every(({ isEarlier }) => isEarlier);
  const left = { readsWait: verdict === "holds writes" ? work.readsWait : NO_WORK, writesWait: NO_WORK };
  return { verdict, safeForm: isLate ? SEPARATE : (findSafeForm(sql) ?? SHORTER), work: left };
}

/** Adds a statement's work. Locks are held until the end, so all statements count from the one that took them. */
function addWork({ readsWait, writesWait }: WorkUnderLocks, measures: StatementMeasures): WorkUnderLocks {
  const { rewritten, scanned, inserted, changed, milliseconds } = measures;
  const add = (work: StatementWork): StatementWork => ({
    read: work.read + Math.max(0, ...[...rewritten, ...scanned].map(({ rows }) => rows)),
    written: work.written + inserted + changed,
    // Times are not added: on a busy machine many statements that do nothing would take a second.
    milliseconds,
  });
  return {
    readsWait: stopsReads(measures) ? add(readsWait) : NO_WORK,
    writesWait: stopsWrites(measures) ? add(writesWait) : NO_WORK,
  };
}

function stopsReads({ locks }: StatementMeasures): boolean {
  return locks.some(({ blocks }) => blocks === "reads and writes");
}

function stopsWrites({ locks, lockedRows }: StatementMeasures): boolean {
  return locks.length > 0 || lockedRows.length > 0;
}

function chooseVerdict(measures: StatementMeasures, { readsWait, writesWait }: WorkUnderLocks): Verdict {
  const { locks, rewritten } = measures;
  if (!stopsWrites(measures)) return "safe";
  if (isLong(readsWait)) {
    const isHeld = (relation: string) => locks.some((lock) => lock.relation === relation);
    return rewritten.some(({ relation, rows }) => rows >= MANY_ROWS && isHeld(relation)) ? "rewrites" : "holds reads";
  }
  return isLong(writesWait) ? "holds writes" : "brief";
}

function isLong({ read, written, milliseconds }: StatementWork): boolean {
  return read >= MANY_ROWS || written >= MANY_ROWS || milliseconds >= SLOW_MS;
}

/** Judges a statement that runs without a transaction, whose locks are gone when it ends. */
export function judgeWithoutTransaction(sql: string): StatementVerdict {
  const text = withoutStrings(sql);
  if (/\bdetach\b.*\bconcurrently\b/is.test(text)) return { verdict: "brief", safeForm: null };
  if (/\bconcurrently\b/i.test(text) || /^(analyze|vacuum(?!.*\bfull\b))/is.test(text))
    return { verdict: "safe", safeForm: null };
  const verdict = /^(vacuum|cluster)\b/i.test(text) ? "rewrites" : "holds reads";
  return { verdict, safeForm: findSafeForm(sql) ?? SHORTER };
}

const SHARED = String.raw`(create|alter|drop)\s+(role|user|group|tablespace|database|subscription)\b|alter\s+system\b|(drop|reassign)\s+owned\b|comment\s+on\s+(role|tablespace|database|subscription)\b|(grant|revoke)\b[^;]*\son\s+(database|tablespace|parameter)\b`;
const IS_SHARED = new RegExp(String.raw`^(${SHARED}|do\b.*\b(${SHARED})|(grant|revoke)\b(?!.*\son\s))`, "is");

/** True if a statement changes objects that all databases of the server share: on a copy it would change the original. */
export function reachesOutside(sql: string): boolean {
  return IS_SHARED.test(withoutStrings(sql));
}

const SEPARATE =
  "An earlier statement of this migration holds the locks until the end. Put this one into a migration of its own.";
const SHORTER = "Change fewer rows at a time, each time in a migration of its own.";
const BATCHES = "Change the rows in batches of some thousands, by key, each committed before the next.";
const NOT_VALID =
  'Add it as "not valid", and run "alter table … validate constraint" in a later migration, which holds nobody.';
const USING_INDEX =
  'Run "create unique index concurrently" in a migration of its own, then "alter table … add constraint … unique (or primary key) using index …".';

const NEW_TABLE = "Create a new table, copy the rows in batches, and rename it.";

/** The patterns of statements with their safe forms, the most specific first. */
const SAFE_FORMS: readonly (readonly [pattern: RegExp, form: string])[] = [
  [/^reindex\b/i, 'Run "reindex … concurrently", alone in a file with "--! no-transaction".'],
  [
    /^refresh\s+materialized\b/i,
    'Run "refresh materialized view concurrently", which needs a unique index on the view.',
  ],
  [
    /^(vacuum|cluster)\b/i,
    'Run "vacuum" without "full", alone in a file with "--! no-transaction"; "reindex … concurrently" makes indexes smaller.',
  ],
  [
    /^create\s+(unique\s+)?index\b/i,
    'Run "create index concurrently if not exists", alone in a file with "--! no-transaction"; of a partitioned table, "create index on only" it, then concurrently on each partition, and "attach partition".',
  ],
  [/^drop\s+index\b/i, 'Run "drop index concurrently", alone in a file with "--! no-transaction".'],
  [/^(update|delete|merge|with|select)\b/i, BATCHES],
  [
    /\battach\s+partition\b/i,
    'Add a check constraint with the bounds of the partition to its table before ("not valid", then "validate"); rows are not read then.',
  ],
  [/\bpartition\s+of\b/i, "Add a check constraint to the default partition before that excludes the new bounds."],
  [
    /^alter\s+domain\b/i,
    'Add the check to each table that uses the domain instead, as "not valid", and run "validate constraint" in a later migration.',
  ],
  [
    /\badd\b.*\b(generated|identity|serial|bigserial|smallserial)\b/is,
    "Add a plain column, fill it by a trigger and in batches, then set its default or identity; it becomes a key by a unique index that is created concurrently.",
  ],
  [/\bexclude\b/i, NEW_TABLE],
  [/\b(unique|primary\s+key)\b(?!.*\busing\s+index\b)/is, USING_INDEX],
  [/\b(references|foreign\s+key)\b/i, NOT_VALID],
  [
    /\bset\s+not\s+null\b/i,
    'Add "check (… is not null) not valid", run "validate constraint" in a later migration, then "set not null", which reads no rows then, and drop the check.',
  ],
  [
    /\balter\s+(column\s+)?\S+\s+(set\s+data\s+)?type\b/i,
    "Add a new column, keep both the same by a trigger, copy the values in batches, then rename and drop the old one.",
  ],
  [
    /\badd\s+(column\b|(?!constraint\b|check\b)\S+\s).*\bdefault\b/is,
    "Three steps: add the column without a default, set the default, and fill the old rows in batches.",
  ],
  [/\bcheck\b|\badd\s+constraint\b/i, NOT_VALID],
  [/\bset\s+((un)?logged|tablespace|access\s+method)\b/i, NEW_TABLE],
];

function findSafeForm(sql: string): string | null {
  const text = withoutStrings(sql);
  return SAFE_FORMS.find(([pattern]) => pattern.test(text))?.[1] ?? null;
}

/** Requests of one kind, by the qualified names of the tables that they read and write. */
export type RequestRate = {
  readonly reads: readonly string[];
  readonly writes: readonly string[];
  readonly perHour: number;
};

const HOUR_MS = 3_600_000;

/** Estimates the requests that arrive while the statement runs and wait for one of its locks, if they write to locked rows. */
export function estimateHeldRequests(
  { locks, lockedRows, milliseconds }: Pick<StatementMeasures, "locks" | "lockedRows" | "milliseconds">,
  rates: readonly RequestRate[],
): number {
  const isHeld = ({ reads, writes }: RequestRate) =>
    lockedRows.some(({ relation }) => writes.includes(relation)) ||
    locks.some(
      ({ relation, blocks }) =>
        writes.includes(relation) || (blocks === "reads and writes" && reads.includes(relation)),
    );
  const perHour = rates.filter(isHeld).reduce((sum, rate) => sum + rate.perHour, 0);
  return (perHour * milliseconds) / HOUR_MS;
}
