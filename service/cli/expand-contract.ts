import type { PostgresUrls } from "#cluster";
import { type ColumnChange, readBackfillStatus, runBackfills, writeColumnPlan } from "#migrate";
import { commandLine } from "#runtime";
import { UsageError } from "./command/command.ts";

/** The exit code of `migrate backfill --status` while rows are left. */
export const EXIT_INCOMPLETE = 3;

const DEFAULT_LOAD = 20;

export const BACKFILL_OPTIONS = {
  load: { type: "string" },
  status: { type: "boolean" },
} as const;

export type BackfillCommand = { readonly load: number; readonly isStatus: boolean };

export function parseBackfillOptions({ load, status }: Readonly<Record<string, unknown>>): BackfillCommand {
  if (load !== undefined && status) throw new UsageError("--load cannot be combined with --status.");
  const percent = load === undefined ? DEFAULT_LOAD : Number(load);
  if (!(percent >= 1 && percent <= 100)) throw new UsageError("--load is a number from 1 to 100: percent of the time.");
  return { load: percent, isStatus: status === true };
}

const formatCount = (rows: number) => rows.toLocaleString("en");

/** Returns the exit code. */
export async function backfill({ directUrl }: PostgresUrls, { load, isStatus }: BackfillCommand): Promise<number> {
  const subject = isStatus
    ? await readBackfillStatus(directUrl)
    : await runBackfills(directUrl, { load, report: console.error });
  if (subject.length === 0) console.log("No backfill is declared, or all are complete.");
  for (const { table, column, ...counts } of subject) {
    const text =
      "missing" in counts
        ? `${formatCount(counts.missing)} of ${formatCount(counts.rows)} rows are left.`
        : `complete; ${formatCount(counts.filled)} rows filled in ${(counts.milliseconds / 1000).toFixed(1)} s.`;
    console.log(`${table}.${column}: ${text}`);
  }
  return isStatus && subject.length > 0 ? EXIT_INCOMPLETE : 0;
}

const PLAN_FORMS = {
  rename: "rename TABLE.COLUMN NAME",
  type: "type TABLE.COLUMN TYPE [EXPRESSION]",
  "not-null": "not-null TABLE.COLUMN EXPRESSION",
  split: 'split TABLE.COLUMN "NEW = EXPRESSION" … "COLUMN = EXPRESSION"',
  merge: 'merge TABLE.COLUMN,COLUMN… "NEW = EXPRESSION" "COLUMN = EXPRESSION" …',
} as const;

export const PLAN_USAGE = Object.values(PLAN_FORMS)
  .map((form) => commandLine("migrate", `plan ${form}`))
  .join("\n");

const TABLE_PARTS = /"(?:[^"]|"")+"|[^.,"]+|,/g;
const ASSIGNMENT = /^\s*(?<column>"(?:[^"]|"")+"|[^\s="]+)\s*=\s*(?<expression>\S.*)$/s;

const unquote = (name: string) => (name.startsWith('"') ? name.slice(1, -1).replaceAll('""', '"') : name);

/** Writes the files of a plan and says what to do with them. */
export async function writePlan({ migrate }: PostgresUrls, words: readonly string[]): Promise<void> {
  const { table, change } = parsePlan(words);
  const files = await writeColumnPlan(migrate, table, change);
  for (const file of files) console.log(`wrote ${file}`);
  console.log(
    "Move one file at a time into current/, commit and apply it. After the first, run " +
      `${commandLine("migrate", "backfill")}.`,
  );
}

function parsePlan([form = "", target = "", ...words]: readonly string[]) {
  if (!Object.hasOwn(PLAN_FORMS, form))
    throw new UsageError(`plan requires one of ${Object.keys(PLAN_FORMS).join(", ")}.`);
  const kind = form as keyof typeof PLAN_FORMS;
  const usage = () => new UsageError(`Write: ${commandLine("migrate", `plan ${PLAN_FORMS[kind]}`)}`);
  const [schema, table, ...columns] = (target.match(TABLE_PARTS) ?? []).filter((part) => part !== ",").map(unquote);
  const [column] = columns;
  if (schema === undefined || table === undefined || column === undefined) throw usage();
  if (columns.length > 1 && kind !== "merge") throw usage();
  const change = toChange();
  if (change === null) throw usage();
  return { table: [schema, table] as const, change };

  function toChange(): ColumnChange | null {
    const [first, second, ...others] = words;
    if (kind === "split" || kind === "merge") {
      const assignments = words.map((word) => ASSIGNMENT.exec(word)?.groups);
      if (assignments.length < 2 || assignments.includes(undefined)) return null;
      return {
        kind: "replace",
        columns,
        assignments: assignments.map((groups) => ({
          column: unquote(groups!.column!),
          expression: groups!.expression!,
        })),
      };
    }
    if (first === undefined || others.length > 0 || (second !== undefined && kind !== "type")) return null;
    if (kind === "rename") return { kind, column: column!, to: unquote(first) };
    if (kind === "type") return { kind, column: column!, type: first, expression: second ?? null };
    return { kind, column: column!, expression: first };
  }
}
