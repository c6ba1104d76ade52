import { upgradeCluster } from "../engine/archive/upgrade-cluster.ts";
import { isEmbedded } from "../engine/config/config.ts";
import { EMBEDDED_DATABASE, reachPostgres } from "../engine/postgres/served-postgres.ts";
import { commandLine, runCommand, UsageError } from "./command.ts";

await runCommand({
  usage: `${commandLine("upgrade", "[--programs FOLDER]")}
  carries the embedded database of an older major version of Postgres over to this one, and keeps the original
  --programs   where postgres of the older version is, when it is not where packages put it

Example:
  ${commandLine("upgrade", "--programs /usr/lib/postgresql/17/bin")}`,
  options: { programs: { type: "string" } },
  async run(config, args, { programs }) {
    if (args.length > 0) throw new UsageError(`"${args[0]}" is one word too many.`);
    if (!isEmbedded(config)) throw new Error("The database of DATABASE_URL is upgraded by whoever runs it.");
    const report = (step: string) => console.error(step);
    const upgraded = await upgradeCluster({
      dataDir: config.dataDir,
      oldBinaries: typeof programs === "string" ? programs : null,
      database: EMBEDDED_DATABASE,
      startCluster: (dataDir) => reachPostgres({ ...config, dataDir }, report, { mayCreate: true }),
      report,
    });
    if (!upgraded) {
      console.log(`The database in ${config.dataDir} is of this version already; there is nothing to upgrade.`);
      return;
    }
    const { archive, original } = upgraded;
    console.log(`${archive.rows} rows of ${archive.tables.length} tables are carried over.`);
    console.log(`The original is in ${original}; remove it when you miss nothing.`);
  },
});
