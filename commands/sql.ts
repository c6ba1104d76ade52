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
      const results = await withClient(postgres.ownerUrl, (client) =>
        client.query({ text: statements, rowMode: "array" }),
      );
      for (const result of [results].flat()) tell(result);
    } catch (error) {
      if (!(error instanceof pg.DatabaseError)) throw error;
      const { message, detail, hint } = error;
      throw new Error([message, detail, hint].filter(Boolean).join("\n"), { cause: error });
    } finally {
      await postgres.close();
    }
  },
});
