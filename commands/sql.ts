import { text } from "node:stream/consumers";
import pg from "pg";
import { reachPostgres } from "../engine/postgres.ts";
import { withClient } from "../engine/with-client.ts";
import { cellOf, inColumns } from "./columns.ts";
import { runCommand, UsageError } from "./command.ts";
import { commandLine } from "./command-line.ts";

/** What each statement gave: rows, or how many it changed. */
function tell({ command, rowCount, rows, fields }: pg.QueryResult): void {
  if (fields.length > 0) {
    console.log(inColumns([fields.map(({ name }) => name), ...rows.map((row: unknown[]) => row.map(cellOf))]));
    console.log(`(${rows.length} ${rows.length === 1 ? "row" : "rows"})`);
  } else console.log(rowCount === null ? command : `${command} ${rowCount}`);
}

const LEFT_OPEN =
  "The SQL begins a transaction and does not end it, so nothing of it was kept: add commit, or leave begin out.";

/** ` (line 3)`, where there are several. */
function placeOf({ position }: pg.DatabaseError, statements: string): string {
  const before = Array.from(statements)
    .slice(0, Number(position ?? 0))
    .join("");
  return position && statements.trim().includes("\n") ? ` (line ${before.split("\n").length})` : "";
}

await runCommand({
  usage: `${commandLine("sql", '"SQL"')}
${commandLine("sql", "< FILE")}
  runs SQL on the database as its owner, all of it or nothing

Example:
  ${commandLine("sql", '"select id, name from users"')}`,
  async run(config, words) {
    const statements = words.length > 0 ? words.join(" ") : process.stdin.isTTY ? "" : await text(process.stdin);
    if (statements.trim() === "") throw new UsageError("Say what to run.");
    const postgres = await reachPostgres(config, (step) => console.error(step));
    try {
      const results = await withClient(postgres.ownerUrl, async (client) => {
        client.on("notice", ({ severity, message }) => console.error(`${severity}: ${message}`));
        const answer = await client.query({ text: statements, rowMode: "array" });
        if (client.getTransactionStatus() === "T") throw new Error(LEFT_OPEN);
        return answer;
      });
      for (const result of [results].flat()) tell(result);
    } catch (error) {
      if (!(error instanceof pg.DatabaseError)) throw error;
      const { message, detail, hint, where } = error;
      const sentence = `${message}${placeOf(error, statements)}`;
      throw new Error([sentence, detail, hint, where].filter(Boolean).join("\n"), { cause: error });
    } finally {
      await postgres.close();
    }
  },
});
