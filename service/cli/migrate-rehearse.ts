import type { PostgresUrls } from "#cluster";
import { lockModeName, type RehearsedStatement, rehearseMigrations, VERDICTS } from "#migrate";
import { EXIT_HOLDS, type RehearseOptions } from "./rehearse-options.ts";
import { withSchemaCopy } from "./schema-copy.ts";

/** From this verdict on, others wait for long. */
const FIRST_UNSAFE = VERDICTS.indexOf("holds writes");

/** Applies what is pending to a copy of the database, and prints whom each statement would hold up. Returns the exit code. */
export async function rehearse(postgres: PostgresUrls, { schemaOnly, format }: RehearseOptions): Promise<number> {
  const statements = await withSchemaCopy(postgres, { withRows: !schemaOnly }, (settings) =>
    rehearseMigrations(settings, postgres.directUrl),
  );
  if (format === "json") console.log(JSON.stringify(statements, null, 2));
  else if (statements.length === 0) console.log("No migrations are pending.");
  else console.log(statements.map(format === "markdown" ? printMarkdown : printText).join("\n\n"));
  return statements.some(({ verdict }) => VERDICTS.indexOf(verdict) >= FIRST_UNSAFE) ? EXIT_HOLDS : 0;
}

function printText(statement: RehearsedStatement): string {
  const { verdict, file, line, safeForm } = statement;
  return [
    `${verdict}: ${file}:${line}: ${firstLine(statement)}`,
    ...describeMeasures(statement).map((measure) => `  ${measure}`),
    ...(safeForm === null ? [] : [`  Safe form: ${safeForm}`]),
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
  ].join("\n\n");
}

function firstLine({ sql }: RehearsedStatement): string {
  const [first, ...others] = sql.split("\n");
  return others.length > 0 ? `${first} …` : first!;
}

function describeMeasures(statement: RehearsedStatement): string[] {
  if (statement.verdict === "not rehearsed")
    return ["It changes what is not in the copy: roles, or what all databases of the server share."];
  const { locks, rewritten, scanned, inserted, changed, walBytes, milliseconds } = statement;
  const count = (rows: number) => Math.round(rows).toLocaleString("en");
  return [
    ...locks.map(
      ({ relation, mode, blocks, isEarlier }) =>
        `${lockModeName(mode)} lock on ${relation}${isEarlier ? " of an earlier statement" : ""}: holds ${blocks}`,
    ),
    ...rewritten.map(({ relation, rows }) => `rewrites ${relation}, ${count(rows)} rows`),
    ...scanned.map(({ relation, rows }) => `reads ${relation}, ${count(rows)} rows`),
    ...(inserted > 0 ? [`inserts ${count(inserted)} rows`] : []),
    ...(changed > 0 ? [`changes ${count(changed)} rows`] : []),
    `${milliseconds} ms, ${count(walBytes / 1024)} KiB of WAL`,
  ];
}
