import { restoreArchive } from "../engine/archive/restore-archive.ts";
import { reachPostgres } from "../engine/postgres/served-postgres.ts";
import { commandLine, runCommand, UsageError } from "./command.ts";

await runCommand({
  usage: `${commandLine("restore", "FILE")}
  fills the empty database of DATA_DIR or DATABASE_URL with the rows of a backup; refuses one that has tables

Example:
  DATA_DIR=.restored ${commandLine("restore", "content.backup.gz")}`,
  async run(config, [file, ...others]) {
    if (!file || others.length > 0) throw new UsageError("Say which file.");
    const postgres = await reachPostgres(config, (step) => console.error(step), { mayCreate: true });
    try {
      const { rows, tables, header } = await restoreArchive(file, postgres.migrate);
      console.log(`${rows} rows of ${tables.length} tables are back as they were at ${header.madeAt}.`);
    } finally {
      await postgres.close();
    }
  },
});
