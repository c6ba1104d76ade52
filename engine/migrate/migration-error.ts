import type pg from "pg";
import { splitStatements } from "./split-statements.ts";

/** A line of a file; the first is 1. */
export type SourceLine = { readonly file: string; readonly line: number };

/** SQL as it is sent to Postgres, and where each of its lines was written. */
export type MigrationSource = { readonly sql: string; readonly origins: readonly SourceLine[] };

const CONTEXT_LINES = 2;

/** A migration that Postgres refused: the file, the line and an excerpt of it, as compilers print them. */
export class MigrationError extends Error {
  constructor(error: Error, source: MigrationSource, offset: number) {
    super(formatError(error, source, offset), { cause: error });
  }
}

/**
 * Where in the script Postgres found the fault. It does not say so of a statement that it understood and could not execute: then
 * the statements are executed one by one until one fails, in a transaction that is rolled back.
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

/** Postgres counts characters, JavaScript UTF-16 units. */
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
