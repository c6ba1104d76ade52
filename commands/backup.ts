import { homelessTables } from "../engine/archive/homeless-tables.ts";
import { writeArchive } from "../engine/archive/write.ts";
import { isEmbedded } from "../engine/config/config.ts";
import { reachPostgres } from "../engine/postgres.ts";
import { withClient } from "../engine/with-client.ts";
import { runCommand, UsageError } from "./command.ts";
import { commandLine } from "./command-line.ts";

/** What is done to the file; what is done to a connection fails otherwise. */
const OF_FILES = ["open", "write", "fsync", "rename"];

await runCommand({
  usage: `${commandLine("backup", "[FILE]")}
  writes all rows, as they are at one moment, into a file that restore reads; the service may run meanwhile

Example:
  ${commandLine("backup", "content.backup.gz")}`,
  async run(config, [given, ...others]) {
    if (others.length > 0) throw new UsageError("Say one file.");
    const file = given ?? `content-${new Date().toISOString().replace(/[:.]/g, "-")}.backup.gz`;
    const postgres = await reachPostgres(config, (step) => console.error(step));
    try {
      const { tables, rows } = await writeArchive(postgres.ownerUrl, file).catch((error) => {
        throw OF_FILES.includes(error.syscall) ? new Error(`${file} cannot be written: ${error.code}.`) : error;
      });
      console.log(`${file} has ${rows} rows of ${tables} tables.`);
      const homeless = await withClient(postgres.ownerUrl, (client) =>
        homelessTables(client, postgres.migrate.histories),
      );
      if (homeless.length > 0) console.error(homelessWarning(homeless));
      if (isEmbedded(config))
        console.log(`Keep ${config.dataDir}/secrets.json with it: tokens are signed by what is in there.`);
    } finally {
      await postgres.close();
    }
  },
});

function homelessWarning(tables: readonly string[]): string {
  return `No migration makes ${tables.join(", ")}, so restore will refuse this file: commit one that does (docs/backup.md), or use pg_dump.`;
}
