import type { Catalog } from "../engine/catalog/catalog.ts";
import { PUBLICATION } from "../engine/changes/publication.ts";
import type { Config } from "../engine/config/config.ts";
import { asPgReads } from "../engine/connection-string.ts";
import { byGravity, examine } from "../engine/inspect/doctor/examine.ts";
import { readLogin, readReplica, readServer, readStream } from "../engine/inspect/doctor/facts.ts";
import type { Finding } from "../engine/inspect/doctor/finding.ts";
import { isToldOfDdl, watchTriggerSql } from "../engine/migrate/watch-trigger.ts";
import type { Postgres } from "../engine/postgres.ts";
import { withClient } from "../engine/with-client.ts";
import { collectionsOf } from "../rest-gateway/resource/collections.ts";
import { addressFindings } from "./address-findings.ts";
import { buildGraphQL } from "./build-graphql.ts";
import { runCommand, UsageError } from "./command.ts";
import { commandLine } from "./command-line.ts";
import { driftFindings, readDrift } from "./drift-findings.ts";
import { graphqlFindings } from "./graphql-findings.ts";
import { nameLines } from "./names.ts";
import { withCatalog } from "./with-catalog.ts";

const SIGNED_IN = "authenticated";

async function findingsOf(catalog: Catalog, config: Config, postgres: Postgres): Promise<Finding[]> {
  const { requestUrl, ownerUrl } = postgres;
  const login = await withClient(requestUrl, (client) => readLogin(client, { catalog }));
  const clients = [config.anonRole, SIGNED_IN].filter((role) => catalog.roles.has(role));
  const [stream, server, isTold] = await withClient(ownerUrl, async (client) => [
    await readStream(client, PUBLICATION),
    await readServer(client, { catalog, clients, searched: config.extraSearchPath }),
    !config.channelEnabled || (await isToldOfDdl(client, config.channel)),
  ]);
  const missingWatch = isTold ? null : await watchTriggerSql(config.channel);
  const replicas = await Promise.all((config.readDatabaseUrls ?? []).map((url) => readReplica(asPgReads(url))));
  const version = 1;
  const servesUsers = collectionsOf(catalog, { role: config.anonRole, version }).findAtRoot("users") !== undefined;
  const found = examine({ catalog, config, clients, servesUsers, login, stream, server, missingWatch, replicas });
  const { leftOut } = await buildGraphQL(catalog, config, postgres);
  const drift = driftFindings(await readDrift(postgres));
  return byGravity([...found, ...addressFindings(catalog), ...graphqlFindings(leftOut), ...drift]);
}

function tell(findings: readonly Finding[]): void {
  if (findings.length === 0) console.log("Nothing to mend.");
  for (const { kind, what, fix } of findings) console.log(`${kind.padEnd(6)}  ${what}\n        ${fix}\n`);
}

await runCommand({
  usage: `${commandLine("doctor")}
  looks for what is open, slow or missing, and says how to mend it, in SQL; danger is a failure

${commandLine("doctor", "--names")}
  lists what each table is called in the conventional interface and in GraphQL`,
  options: { names: { type: "boolean" } },
  async run(given, words, { names }) {
    if (words.length > 0) throw new UsageError(`"${words[0]}" is one word too many.`);
    if (names) {
      const lines = await withCatalog(given, async ({ catalog, config, postgres }) =>
        nameLines(catalog, (await buildGraphQL(catalog, config, postgres)).names()),
      );
      for (const line of lines) console.log(line);
      return;
    }
    const findings = await withCatalog(given, ({ catalog, config, postgres }) => findingsOf(catalog, config, postgres));
    tell(findings);
    if (findings.some(({ kind }) => kind === "danger")) process.exitCode = 1;
  },
});
