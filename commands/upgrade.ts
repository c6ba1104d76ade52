import { upgradeCluster } from "../engine/archive/upgrade-cluster.ts";
import { isEmbedded } from "../engine/config/config.ts";
import { DATABASE, reachPostgres } from "../engine/postgres.ts";
import { runCommand, UsageError } from "./command.ts";
import { commandLine } from "./command-line.ts";

await runCommand({
  usage: `${commandLine("upgrade", "[--programs FOLDER]")}
  carries the embedded database of an older major version of Postgres over to this one, and keeps the original
  --programs   where postgres of the older version is, when it is not where packages put it

Example:
  ${commandLine("upgrade", "--programs /usr/lib/postgresql/17/bin")}`,
  options: { programs: { type: "string" } },
  async run(config, words, { programs }) {
    if (words.length > 0) throw new UsageError(`"${words[0]}" is one word too many.`);
    if (!isEmbedded(config)) throw new Error("The database of DATABASE_URL is upgraded by whoever runs it.");
    const tell = (step: string) => console.error(step);
    const upgraded = await upgradeCluster({
      dataDir: config.dataDir,
      programs: typeof programs === "string" ? programs : null,
      database: DATABASE,
      startCluster: (dataDir) => reachPostgres({ ...config, dataDir }, tell, { mayCreate: true }),
      report: tell,
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
