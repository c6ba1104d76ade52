import { text } from "node:stream/consumers";
import pg from "pg";
import { reachPostgres } from "../engine/postgres.ts";
import { withClient } from "../engine/with-client.ts";
import { runCommand, UsageError } from "./command.ts";

/** What each statement gave: rows, or how many it changed. */
function tell({ command, rowCount, rows, fields }: pg.QueryResult): void {
  if (fields.length > 0) console.table(rows);
  else console.log(rowCount === null ? command : `${command} ${rowCount}`);
}

await runCommand({
  usage: `npm run sql -- "create table …"   runs SQL on the database as its owner, all of it or nothing
npm run sql < file.sql            the same from a file`,
  async run(config, words) {
    const statements = words.length > 0 ? words.join(" ") : process.stdin.isTTY ? "" : await text(process.stdin);
    if (statements.trim() === "") throw new UsageError("Say what to run.");
    const postgres = await reachPostgres(config, (step) => console.error(step));
    try {
      const results = await withClient(postgres.ownerUrl, (client) => client.query(statements));
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
