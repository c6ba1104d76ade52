import {
  holdsOthers,
  lockModeName,
  MANY_ROWS,
  type MigrationUndo,
  type RehearsedStatement,
  type UndoVerdict,
} from "#migrate";
import { commandLine } from "#runtime";
import type { RehearseOptions } from "./rehearse-options.ts";

const formatCount = (rows: number) => Math.round(rows).toLocaleString("en");

export function printRehearsal(statements: readonly RehearsedStatement[], format: RehearseOptions["format"]): string {
  if (format === "json") return JSON.stringify(statements, null, 2);
  if (statements.length === 0) return "No migrations are pending.";
  return statements.map(format === "markdown" ? printMarkdown : printText).join("\n\n");
}

function printText(statement: RehearsedStatement): string {
  return [
    printHeading(statement),
    ...describeMeasures(statement).map((measure) => `  ${measure}`),
    ...printSafeForm(statement),
    ...printUndo(statement),
  ].join("\n");
}

function printMarkdown(statement: RehearsedStatement): string {
  const { verdict, file, line, safeForm, sql } = statement;
  return [
    `### ${verdict}: \`${file}:${line}\``,
    `\`\`\`sql\n${sql}\n\`\`\``,
    describeMeasures(statement)
      .map((measure) => `- ${measure}`)
      .join("\n"),
    ...(safeForm === null ? [] : [`**Safe form:** ${safeForm}`]),
    ...printUndoMarkdown(statement),
  ].join("\n\n");
}

/** Returns the warnings of `commit`: only the statements that block others, since its tables are empty. Null if there are none. */
export function printWarnings(statements: readonly RehearsedStatement[] | null): string | null {
  if (statements === null)
    return "The statements cannot be judged: they fail in a rehearsal, which creates no roles and has no user mappings.";
  const holding = statements.filter(holdsOthers);
  if (holding.length === 0) return null;
  return [
    `Where the tables have ${formatCount(MANY_ROWS)} rows or more, others wait for these statements:`,
    ...holding.map((statement) =>
      [
        printHeading(statement),
        ...describeLocks(statement).map((lock) => `  ${lock}`),
        ...printSafeForm(statement),
      ].join("\n"),
    ),
  ].join("\n");
}

function printHeading({ verdict, file, line, sql }: RehearsedStatement): string {
  const [first, ...others] = sql.split("\n");
  return `${verdict}: ${file}:${line}: ${first}${others.length > 0 ? " …" : ""}`;
}

function printSafeForm({ safeForm }: RehearsedStatement): string[] {
  return safeForm === null ? [] : [`  Safe form: ${safeForm}`];
}

const NOTHING_TO_UNDO = "-- It changes nothing.";

function printUndo({ undo }: RehearsedStatement): string[] {
  return undo === null ? [] : ["", ...printVerdict("The migration", undo)];
}

function printVerdict(migration: string, undo: UndoVerdict): string[] {
  if (undo.verdict === "cannot be undone") return [`${migration} cannot be undone: ${explainLoss(undo)}`];
  return [`${migration} can be undone by:`, ...(undo.sql || NOTHING_TO_UNDO).split("\n").map((line) => `  ${line}`)];
}

/** Returns the text that `undo` prints about the last migration. */
export function printMigrationUndo({ file, undo, changedSince }: MigrationUndo): string {
  const drops = undo.verdict === "can be undone" && undo.drops.length > 0 ? undo.drops : null;
  const loss = drops ? [`What was written to these is lost: ${drops.join(", ")}.`] : [];
  const changes =
    changedSince.length > 0
      ? [
          "These were changed after the migration, and would be lost:",
          ...changedSince.map((change) => `  ${change}`),
          `${commandLine("migrate", "status")} prints the SQL that keeps them.`,
        ]
      : [];
  return [...printVerdict(file, undo), ...loss, ...changes].join("\n");
}

function printUndoMarkdown({ undo }: RehearsedStatement): string[] {
  if (undo === null) return [];
  if (undo.verdict === "cannot be undone") return [`**The migration cannot be undone:** ${explainLoss(undo)}`];
  return ["**The migration can be undone by:**", `\`\`\`sql\n${undo.sql || NOTHING_TO_UNDO}\n\`\`\``];
}

function explainLoss({ reason, statement }: Extract<UndoVerdict, { verdict: "cannot be undone" }>): string {
  return statement === null ? reason : `${reason} (${statement.file}:${statement.line})`;
}

function describeLocks({ locks, lockedRows }: RehearsedStatement): string[] {
  const origin = (isEarlier: boolean) => (isEarlier ? " of an earlier statement" : "");
  return [
    ...locks.map(
      ({ relation, mode, blocks, isEarlier }) =>
        `${lockModeName(mode)} lock on ${relation}${origin(isEarlier)}: holds ${blocks}`,
    ),
    ...lockedRows.map(
      ({ relation, rows, isEarlier }) =>
        `locks on ${formatCount(rows)} rows of ${relation}${origin(isEarlier)}: holds writes of these rows`,
    ),
  ];
}

function describeMeasures(statement: RehearsedStatement): string[] {
  if (statement.verdict === "not rehearsed")
    return ["It changes what is not in the copy: roles, or what all databases of the server share."];
  const { rewritten, scanned, inserted, changed, walBytes, milliseconds, heldRequests } = statement;
  return [
    ...describeLocks(statement),
    ...rewritten.map(({ relation, rows }) => `rewrites ${relation}, ${formatCount(rows)} rows`),
    ...scanned.map(({ relation, rows }) => `reads ${relation}, ${formatCount(rows)} rows`),
    ...(inserted > 0 ? [`inserts ${formatCount(inserted)} rows`] : []),
    ...(changed > 0 ? [`changes ${formatCount(changed)} rows`] : []),
    `${milliseconds} ms, ${formatCount(walBytes / 1024)} KiB of WAL`,
    ...(heldRequests === undefined
      ? []
      : [
          `would hold about ${Number(heldRequests.toFixed(heldRequests < 10 ? 2 : 0))} requests at the rates of the last hour`,
        ]),
  ];
}
