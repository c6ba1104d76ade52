import { writeArchive } from "#archive";
import { reachPostgres } from "#cluster";
import { isEmbedded } from "#config";
import { commandLine } from "#runtime";
import { runCommand, UsageError } from "./command.ts";

/** System calls on files; errors with others concern the connection. */
const FILE_SYSCALLS = ["open", "write", "fsync", "rename"];

await runCommand({
  usage: `${commandLine("backup", "[FILE]")}
  Writes the whole database (definitions, privileges and rows) to a file that restore reads, from one consistent
  snapshot. The service may keep running. The file contains password hashes: keep it as safe as the database.

Example:
  ${commandLine("backup", "content.backup.gz")}`,
  async run(config, [requestedFile, ...others]) {
    if (others.length > 0) throw new UsageError("Specify one file.");
    const file = requestedFile ?? `content-${new Date().toISOString().replace(/[:.]/g, "-")}.backup.gz`;
    const postgres = await reachPostgres(config, (step) => console.error(step));
    try {
      const { tables, rows } = await writeArchive(postgres.directUrl, file).catch((error) => {
        throw FILE_SYSCALLS.includes(error.syscall) ? new Error(`${file} cannot be written: ${error.code}.`) : error;
      });
      console.log(`${file} has ${rows} rows of ${tables} tables.`);
      if (isEmbedded(config))
        console.log(`Keep ${config.dataDir}/secrets.json with it: it holds the keys that sign tokens.`);
    } finally {
      await postgres.close();
    }
  },
});
