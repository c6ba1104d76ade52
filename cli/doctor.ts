import pg from "pg";
import type { Catalog } from "../engine/catalog/catalog.ts";
import { hasSchemaChangeTrigger, schemaChangeTriggerSql } from "../engine/catalog/catalog-watch.ts";
import type { CatalogTable } from "../engine/catalog/tables.ts";
import type { Config } from "../engine/config/config.ts";
import { runChecks, sortBySeverity } from "../engine/inspect/doctor/doctor.ts";
import {
  type DoctorFinding,
  readHostFacts,
  readLoginFacts,
  readReplicaFacts,
  readReplicationFacts,
  readServerFacts,
} from "../engine/inspect/doctor/facts.ts";
import { driftFindings, readDrift } from "../engine/inspect/doctor/server-checks.ts";
import { toPgConnectionString } from "../engine/pg-client/connection-string.ts";
import { quotedName } from "../engine/pg-client/quoted-name.ts";
import { withClient } from "../engine/pg-client/with-client.ts";
import type { PostgresUrls } from "../engine/postgres/served-postgres.ts";
import { REALTIME_PUBLICATION } from "../engine/replication/replication-slots.ts";
import type { OmittedObject } from "../plugins/omitted-objects.ts";
import type { GraphqlTableNames } from "../plugins/table.ts";
import { collectionsOf, displacedTables, tableAddresses } from "../rest-gateway/resource/collections.ts";
import { commandLine, runCommand, UsageError } from "./command.ts";
import { withCatalog } from "./command-context.ts";

const SIGNED_IN = "authenticated";

async function collectFindings(catalog: Catalog, config: Config, postgres: PostgresUrls): Promise<DoctorFinding[]> {
  const { requestUrl, directUrl } = postgres;
  const login = await readLoginFacts(requestUrl, { catalog, config });
  const clients = [config.anonRole, SIGNED_IN].filter((role) => catalog.roles.has(role));
  const [replication, server, hasTrigger] = await withClient(directUrl, async (client) => [
    await readReplicationFacts(client, REALTIME_PUBLICATION),
    await readServerFacts(client, {
      catalog,
      clients,
      searched: config.extraSearchPath,
      claimsHook: config.claimsHook,
    }),
    !config.channelEnabled || (await hasSchemaChangeTrigger(client, config.channel)),
  ]);
  const missingTriggerSql = hasTrigger ? null : await schemaChangeTriggerSql(config.channel);
  const replicas = await Promise.all(
    (config.readDatabaseUrls ?? []).map((url) => readReplicaFacts(toPgConnectionString(url))),
  );
  const hosts = await Promise.all(databaseUrls(config).map(([setting, url]) => readHostFacts(setting, url)));
  const version = 1;
  const servesUsers = collectionsOf(catalog, { role: config.anonRole, version }).findAtRoot("users") !== undefined;
  const checked = runChecks({
    catalog,
    config,
    clients,
    servesUsers,
    login,
    replication,
    server,
    missingTriggerSql,
    replicas,
    hosts: hosts.flat(),
  });
  const { buildGraphQL } = await import("./explain-query.ts");
  const { omitted } = await buildGraphQL(catalog, config, postgres);
  const drift = driftFindings(await readDrift(postgres));
  return sortBySeverity([...checked, ...addressFindings(catalog), ...graphqlFindings(omitted), ...drift]);
}

function databaseUrls({ databaseUrl, ownerDatabaseUrl, directDatabaseUrl }: Config): (readonly [string, string])[] {
  const urls = {
    DATABASE_URL: databaseUrl,
    OWNER_DATABASE_URL: ownerDatabaseUrl,
    DIRECT_DATABASE_URL: directDatabaseUrl,
  };
  return Object.entries(urls).flatMap(([setting, url]) => (url === null ? [] : [[setting, url] as const]));
}

function printFindings(findings: readonly DoctorFinding[]): void {
  if (findings.length === 0) console.log("No problems found.");
  for (const { kind, problem, fix } of findings) console.log(`${kind.padEnd(6)}  ${problem}\n        ${fix}\n`);
}

await runCommand({
  usage: `${commandLine("doctor")}
  Checks security, performance and configuration, and prints a fix for each problem. Exits with 1 if a problem is dangerous.

${commandLine("doctor", "--names")}
  Lists the REST path and the GraphQL names of each table.`,
  options: { names: { type: "boolean" } },
  async run(baseConfig, args, { names }) {
    if (args.length > 0) throw new UsageError(`Unexpected argument "${args[0]}".`);
    if (names) {
      const lines = await withCatalog(baseConfig, async ({ catalog, config, postgres }) => {
        const { buildGraphQL } = await import("./explain-query.ts");
        return formatTableNames(catalog, (await buildGraphQL(catalog, config, postgres)).tableNames());
      });
      for (const line of lines) console.log(line);
      return;
    }
    const findings = await withCatalog(baseConfig, ({ catalog, config, postgres }) =>
      collectFindings(catalog, config, postgres),
    );
    printFindings(findings);
    if (findings.some(({ kind }) => kind === "danger")) process.exitCode = 1;
  },
});

/** Tables whose path differs from their name. */
export function addressFindings(catalog: Catalog): DoctorFinding[] {
  return displacedTables(catalog).map(({ table, address, holder }) => ({
    kind: "advice",
    problem: `${qualifiedNameOf(table)} is served at /api/v1/${address}, because ${qualifiedNameOf(holder)} has the path of that name.`,
    fix: `comment on ${commentTarget(table)} ${qualifiedNameOf(table)} is ${commentWithAddress(table)};  -- or rename it`,
  }));
}

function commentTarget({ kind }: CatalogTable): string {
  return kind === "partitioned table" ? "table" : kind;
}

/** The table's comment with an address tag. */
function commentWithAddress({ comment }: CatalogTable): string {
  return pg.escapeLiteral(["@address another-name", ...(comment === null ? [] : [comment])].join("\n"));
}

function qualifiedNameOf({ schema, name }: CatalogTable): string {
  return quotedName(schema, name);
}

/** Objects that are missing in the GraphQL schema. */
export function graphqlFindings(omitted: readonly OmittedObject[]): DoctorFinding[] {
  return omitted.map(({ object, reason, fix }) => {
    return { kind: "advice", problem: `GraphQL is served without ${object}: ${reason}.`, fix };
  });
}

/** The name of each exposed table in SQL, REST and GraphQL, one line per table. */
export function formatTableNames(catalog: Catalog, inGraphQL: readonly GraphqlTableNames[]): string[] {
  const graphqlNames = new Map(inGraphQL.map((names) => [quotedName(names.schema, names.table), names]));
  const rows = [...tableAddresses(catalog).tables].map(([address, { schema, name }]) => {
    const { type = "-", fields = [] } = graphqlNames.get(quotedName(schema, name)) ?? {};
    return [`${schema}.${name}`, `/api/v1/${address}`, [type, ...fields].join(" ")];
  });
  rows.sort(([one], [other]) => (one! < other! ? -1 : 1));
  const all = [["table", "REST", "GraphQL: type, fields"], ...rows];
  const widths = [0, 1].map((column) => Math.max(...all.map((row) => row[column]!.length)));
  return all.map(([table, address, graphql]) => {
    return `${table!.padEnd(widths[0]!)}  ${address!.padEnd(widths[1]!)}  ${graphql}`;
  });
}
