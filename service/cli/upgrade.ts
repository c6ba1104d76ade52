import { upgradeCluster } from "#archive";
import { EMBEDDED_DATABASE, reachPostgres } from "#cluster";
import { isEmbedded } from "#config";
import { commandLine } from "#runtime";
import { runCommand, UsageError } from "./command.ts";

await runCommand({
  usage: `${commandLine("upgrade", "[--programs FOLDER]")}
  Upgrades the embedded database from an older major version of Postgres; the original is kept.
  --programs   folder of the postgres program of the older version, if it is not in the usual place

Example:
  ${commandLine("upgrade", "--programs /usr/lib/postgresql/17/bin")}`,
  options: { programs: { type: "string" } },
  async run(config, args, { programs }) {
    if (args.length > 0) throw new UsageError(`Unexpected argument "${args[0]}".`);
    if (!isEmbedded(config))
      throw new Error(
        "Only the embedded database is upgraded here. Upgrade the server of DATABASE_URL with its own tools.",
      );
    const report = (step: string) => console.error(step);
    const upgraded = await upgradeCluster({
      dataDir: config.dataDir,
      oldBinaries: typeof programs === "string" ? programs : null,
      database: EMBEDDED_DATABASE,
      startCluster: (dataDir) => reachPostgres({ ...config, dataDir }, report, { mayCreate: true }),
      report,
    });
    if (!upgraded) {
      console.log(`The database in ${config.dataDir} has this version already. Nothing to upgrade.`);
      return;
    }
    const { archive, original } = upgraded;
    console.log(`${archive.rows} rows of ${archive.tables.length} tables are copied.`);
    console.log(`The original is in ${original}; remove it when you have checked the result.`);
  },
});
