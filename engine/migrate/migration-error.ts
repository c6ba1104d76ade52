import type pg from "pg";
import { splitStatements } from "./split-statements.ts";

/** A line of a file, counted from 1. */
export type SourceLine = { readonly file: string; readonly line: number };

/** SQL as it is sent to Postgres, with the file and line of each of its lines. */
export type MigrationSource = { readonly sql: string; readonly origins: readonly SourceLine[] };

const CONTEXT_LINES = 2;

/** A failed migration. The message has the file, line and an excerpt, like that of a compiler. */
export class MigrationError extends Error {
  constructor(error: Error, source: MigrationSource, offset: number) {
    super(formatError(error, source, offset), { cause: error });
  }
}

/**
 * The offset of the error in the script. For run-time errors Postgres reports no position; then the statements are executed one
 * by one until one fails, in a transaction that is rolled back.
 */
export async function findErrorOffset(client: pg.ClientBase, sql: string, error: Error): Promise<number> {
  const position = Number((error as Partial<pg.DatabaseError>).position ?? 0);
  if (position > 0) return toUtf16Offset(sql, position);
  const statements = splitStatements(sql);
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

/** Postgres counts characters, JavaScript UTF-16 code units. */
function toUtf16Offset(sql: string, position: number): number {
  return Array.from(sql)
    .slice(0, position - 1)
    .join("").length;
}

function formatError(error: Error, { sql, origins }: MigrationSource, offset: number): string {
  const before = sql.slice(0, offset).split("\n");
  const index = before.length - 1;
  const column = before[index]!.length;
  const { file, line } = origins[index] ?? origins.at(-1)!;
  const lines = sql.split("\n");
  const excerpt: string[] = [];
  const width = String(line + CONTEXT_LINES).length;
  for (let at = Math.max(0, index - CONTEXT_LINES); at <= index + CONTEXT_LINES; at++) {
    const origin = origins[at];
    if (origin?.file !== file || lines[at] === undefined) continue;
    excerpt.push(`${at === index ? ">" : " "} ${String(origin.line).padStart(width)} | ${lines[at]}`);
    if (at === index) excerpt.push(`  ${" ".repeat(width)} | ${" ".repeat(column)}^`);
  }
  const { code, detail, hint, where } = error as Partial<pg.DatabaseError>;
  const notes = [
    ...(detail ? [`Detail: ${detail}`] : []),
    ...(hint ? [`Hint: ${hint}`] : []),
    ...(where ? [`Where: ${where}`] : []),
  ];
  const reason = `${file}:${line}:${column + 1}: ${error.message}${code ? ` (${code})` : ""}`;
  return [reason, ...excerpt, ...notes].join("\n");
}
