import { reachPostgres } from "#cluster";
import { writeArchive } from "#cluster/archive";
import { isEmbedded } from "#config";
import { openFileStore } from "#files";
import { commandLine } from "#runtime";
import { runCommand, UsageError } from "./command/command.ts";

/** System calls on files. Errors with other system calls concern the connection. */
const FILE_SYSCALLS = ["open", "write", "fsync", "rename"];

await runCommand({
  usage: `${commandLine("backup", "[FILE] [--without-files]")}
  Writes the whole database (definitions, privileges, rows and contents of files) to a file that restore reads, from
  one consistent snapshot. The service may keep running. The file contains password hashes: keep it as safe as the
  database. --without-files leaves the contents of files out.

Example:
  ${commandLine("backup", "content.backup.gz")}`,
  options: { "without-files": { type: "boolean" } },
  async run(config, [requestedFile, ...others], options) {
    if (others.length > 0) throw new UsageError("Specify one file.");
    const file = requestedFile ?? `content-${new Date().toISOString().replace(/[:.]/g, "-")}.backup.gz`;
    const postgres = await reachPostgres(config, (step) => console.error(step));
    try {
      const store = options["without-files"] ? undefined : openFileStore(config);
      const { tables, rows, files } = await writeArchive(postgres.directUrl, file, { store }).catch((error) => {
        throw FILE_SYSCALLS.includes(error.syscall) ? new Error(`${file} cannot be written: ${error.code}.`) : error;
      });
      console.log(`${file} has ${rows} rows of ${tables} tables${files > 0 ? `, and ${files} files` : ""}.`);
      if (isEmbedded(config))
        console.log(`Keep ${config.dataDir}/secrets.json with it: it holds the keys that sign tokens.`);
    } finally {
      await postgres.close();
    }
  },
});
