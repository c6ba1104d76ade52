import { tablesWithoutMigration, writeArchive } from "../engine/archive/write-archive.ts";
import { isEmbedded } from "../engine/config/config.ts";
import { withClient } from "../engine/pg-client/with-client.ts";
import { reachPostgres } from "../engine/postgres/served-postgres.ts";
import { commandLine, runCommand, UsageError } from "./command.ts";

/** System calls on files; errors with others concern the connection. */
const FILE_SYSCALLS = ["open", "write", "fsync", "rename"];

await runCommand({
  usage: `${commandLine("backup", "[FILE]")}
  Writes all rows to a file that restore reads, from one consistent snapshot. The service may keep running.

Example:
  ${commandLine("backup", "content.backup.gz")}`,
  async run(config, [requestedFile, ...others]) {
    if (others.length > 0) throw new UsageError("Specify one file.");
    const file = requestedFile ?? `content-${new Date().toISOString().replace(/[:.]/g, "-")}.backup.gz`;
    const postgres = await reachPostgres(config, (step) => console.error(step));
    try {
      const { tables, rows } = await writeArchive(postgres.ownerUrl, file).catch((error) => {
        throw FILE_SYSCALLS.includes(error.syscall) ? new Error(`${file} cannot be written: ${error.code}.`) : error;
      });
      console.log(`${file} has ${rows} rows of ${tables} tables.`);
      const unmigrated = await withClient(postgres.ownerUrl, (client) =>
        tablesWithoutMigration(client, postgres.migrate.histories),
      );
      if (unmigrated.length > 0) console.error(unmigratedWarning(unmigrated));
      if (isEmbedded(config))
        console.log(`Keep ${config.dataDir}/secrets.json with it: it holds the keys that sign tokens.`);
    } finally {
      await postgres.close();
    }
  },
});

function unmigratedWarning(tables: readonly string[]): string {
  return `No migration creates ${tables.join(", ")}, so restore will reject this file: commit a migration for them (docs/backup.md), or use pg_dump.`;
}
