import { restoreArchive } from "../engine/archive/restore-archive.ts";
import { reachPostgres } from "../engine/postgres/served-postgres.ts";
import { commandLine, runCommand, UsageError } from "./command.ts";

await runCommand({
  usage: `${commandLine("restore", "FILE")}
  Restores a backup into the empty database of DATA_DIR or DATABASE_URL. A database with tables is refused.

Example:
  DATA_DIR=.restored ${commandLine("restore", "content.backup.gz")}`,
  async run(config, [file, ...others]) {
    if (!file || others.length > 0) throw new UsageError("Specify a file.");
    const postgres = await reachPostgres(config, (step) => console.error(step), { mayCreate: true });
    try {
      const { rows, tables, header } = await restoreArchive(file, postgres.migrate);
      console.log(`${rows} rows of ${tables.length} tables are restored, as of ${header.madeAt}.`);
    } finally {
      await postgres.close();
    }
  },
});
