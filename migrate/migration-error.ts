import type pg from "pg";
import { hintOf } from "#postgres/client";
import { ExplainedError } from "#runtime";
import { splitStatements, toUtf16Offset } from "./split-statements.ts";

/** A line of a file, counted from 1. */
export type SourceLine = { readonly file: string; readonly line: number };

/** SQL as it is sent to Postgres, with the file and line of each of its lines. */
export type MigrationSource = { readonly sql: string; readonly origins: readonly SourceLine[] };

const CONTEXT_LINES = 2;
const QUERY_CANCELED = "57014";

/** A failed migration. The message has the file, line and an excerpt, like that of a compiler; the cause is the error of Postgres. */
export class MigrationError extends ExplainedError {
  /** The place of the error, counted from 1. */
  readonly place: SourceLine & { readonly column: number };

  /** The remark describes the remains of the failed migration. */
  constructor(error: Error, source: MigrationSource, offset: number, remark: string | null = null) {
    const place = findPlace(source, offset);
    super([formatError(error, source, place), ...(remark ? [remark] : [])].join("\n"), { cause: error });
    this.place = place;
  }
}

/**
 * The offset of the error in the script. For run-time errors Postgres reports no position; then the statements are executed one
 * by one until one fails, in a transaction that is rolled back.
 */
export async function findErrorOffset(client: pg.ClientBase, sql: string, error: Error): Promise<number> {
  const { position = "0", code } = error as Partial<pg.DatabaseError>;
  if (Number(position) > 0) return toUtf16Offset(sql, Number(position));
  const statements = splitStatements(sql);
  // A cancelled statement may have run for hours. A single statement may commit.
  if (code === QUERY_CANCELED || statements.length === 1) return statements[0]?.start ?? 0;
  await client.query("begin");
  try {
    for (const { start, sql: statement } of statements) {
      const failed = await client.query(statement).then(
        () => false,
        () => true,
      );
      if (failed) return start;
    }
  } finally {
    await client.query("rollback");
  }
  return statements[0]?.start ?? 0;
}

/** The line of the file, and its index in the SQL, which has the lines of included files, too. */
type SourcePlace = MigrationError["place"] & { readonly index: number };

export function findPlace({ sql, origins }: MigrationSource, offset: number): SourcePlace {
  const before = sql.slice(0, offset).split("\n");
  const index = before.length - 1;
  return { ...(origins[index] ?? origins.at(-1)!), column: before[index]!.length + 1, index };
}

function formatError(
  error: Error,
  { sql, origins }: MigrationSource,
  { file, line, column, index }: SourcePlace,
): string {
  const lines = sql.split("\n");
  const excerpt: string[] = [];
  const width = String(line + CONTEXT_LINES).length;
  for (let at = Math.max(0, index - CONTEXT_LINES); at <= index + CONTEXT_LINES; at++) {
    const origin = origins[at];
    if (origin?.file !== file || lines[at] === undefined) continue;
    excerpt.push(`${at === index ? ">" : " "} ${String(origin.line).padStart(width)} | ${lines[at]}`);
    if (at === index) excerpt.push(`  ${" ".repeat(width)} | ${" ".repeat(column - 1)}^`);
  }
  const { code, detail, where } = error as Partial<pg.DatabaseError>;
  const hint = hintOf(error as pg.DatabaseError);
  const notes = [
    ...(detail ? [`Detail: ${detail}`] : []),
    ...(hint ? [`Hint: ${hint}`] : []),
    ...(where ? [`Where: ${where}`] : []),
  ];
  const reason = `${file}:${line}:${column}: ${error.message}${code ? ` (${code})` : ""}`;
  return [reason, ...excerpt, ...notes].join("\n");
}
