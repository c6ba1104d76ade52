import { text } from "node:stream/consumers";
import pg from "pg";
import { reachPostgres } from "#cluster";
import { hintOf, withClient } from "#postgres/client";
import { commandLine } from "#runtime";
import { formatColumns, runCommand, UsageError } from "./command/command.ts";

/** Keeps values as Postgres prints them, because JavaScript values lose digits and time zones. */
const AS_TEXT = { getTypeParser: () => (value: string) => value };

/** Prints the rows of a statement, or the number of rows that it changed. */
function printResult({ command, rowCount, rows, fields }: pg.QueryResult<(string | null)[]>): void {
  if (fields.length > 0) {
    const cells = rows.map((row) => row.map((value) => value ?? ""));
    console.log(formatColumns([fields.map(({ name }) => name), ...cells]));
    console.log(`(${rows.length} ${rows.length === 1 ? "row" : "rows"})`);
  } else console.log(rowCount === null ? command : `${command} ${rowCount}`);
}

const OPEN_TRANSACTION =
  "The SQL begins a transaction and does not end it, so it was rolled back. Add commit, or remove begin.";

/** Formats the line of the error as ` (line 3)`, if the SQL has several lines. */
function formatLine({ position }: pg.DatabaseError, statements: string): string {
  const before = Array.from(statements)
    .slice(0, Number(position ?? 0))
    .join("");
  return position && statements.trim().includes("\n") ? ` (line ${before.split("\n").length})` : "";
}

await runCommand({
  usage: `${commandLine("sql", '"SQL"')}
${commandLine("sql", "< FILE")}
  Runs SQL as the database owner, in one transaction.

Example:
  ${commandLine("sql", '"select id, name from users"')}`,
  async run(config, args) {
    const statements = args.length > 0 ? args.join(" ") : process.stdin.isTTY ? "" : await text(process.stdin);
    if (statements.trim() === "") throw new UsageError("No SQL was given.");
    const postgres = await reachPostgres(config, (step) => console.error(step));
    try {
      const results = await withClient(postgres.directUrl, async (client) => {
        client.on("notice", ({ severity, message }) => console.error(`${severity}: ${message}`));
        const result = await client.query<(string | null)[]>({
          text: statements,
          rowMode: "array",
          types: AS_TEXT,
        });
        if (client.getTransactionStatus() === "T") throw new Error(OPEN_TRANSACTION);
        return result;
      });
      for (const result of [results].flat()) printResult(result);
    } catch (error) {
      if (!(error instanceof pg.DatabaseError)) throw error;
      const { message, detail, where } = error;
      const sentence = `${message}${formatLine(error, statements)}`;
      throw new Error([sentence, detail, hintOf(error), where].filter(Boolean).join("\n"), { cause: error });
    } finally {
      await postgres.close();
    }
  },
});
