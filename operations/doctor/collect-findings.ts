import pg from "pg";
import type { Catalog, CatalogTable } from "#catalog";
import { missingTriggerSql } from "#catalog/loading";
import type { PostgresUrls } from "#cluster";
import type { Config } from "#config";
import { toPgConnectionString } from "#config/connection-string";
import type { FileStore } from "#files";
import { REALTIME_PUBLICATION } from "#live/stream";
import { hasMovedApiNames, moveApiNames, withServiceClient } from "#postgres/client";
import { collectionsOf, displacedTables } from "#rest-gateway/resource/collections";
import { runChecks, sortBySeverity } from "./doctor.ts";
import { driftFindings, readDrift } from "./drift-checks.ts";
import {
  type DoctorFinding,
  readHostFacts,
  readLoginFacts,
  readReplicaFacts,
  readReplicationFacts,
  readServerFacts,
} from "./facts.ts";
import { readFileFindings } from "./file-checks.ts";
import { readRowFunctionFindings } from "./row-function-checks.ts";
import { readScheduleFindings } from "./schedule-checks.ts";
import { readSignUpFindings } from "./sign-up-checks.ts";
import { qualifiedNameOf } from "./table-checks.ts";
import { readWebhookFindings } from "./webhook-checks.ts";

export type { DoctorFinding } from "./facts.ts";
export { findSlowPolicy } from "./faster-policies.ts";
export { findMigrationSql } from "./migration-sql.ts";
export { driftFindings, readDrift };

const SIGNED_IN = "authenticated";

type DoctorSubject = {
  readonly catalog: Catalog;
  readonly config: Config;
  readonly postgres: Pick<PostgresUrls, "requestUrl" | "directUrl" | "migrate">;
  /** Objects that are missing in the GraphQL schema. */
  readonly findOmitted: () => Promise<readonly OmittedFromGraphql[]>;
  /** True if the database is compared with its migrations, in a database that is created for that. */
  readonly comparesMigrations: boolean;
  /** The store to compare files with rows, for which all names of files are read; without it, they are not compared. */
  readonly fileStore?: FileStore;
};

export type OmittedFromGraphql = { readonly object: string; readonly reason: string; readonly fix: string };

/** Returns all problems, the most severe first, as `npm run doctor` prints them. */
export async function collectFindings(subject: DoctorSubject): Promise<DoctorFinding[]> {
  const { catalog, config, postgres } = subject;
  const { requestUrl, directUrl } = postgres;
  const login = await readLoginFacts(requestUrl, { catalog, config });
  const clients = [config.anonRole, SIGNED_IN].filter((role) => catalog.roles.has(role));
  const [replication, server, jobs, signUps, rowFunctions, files, triggerSql] = await withServiceClient(
    directUrl,
    async (client) => [
      await readReplicationFacts(client, REALTIME_PUBLICATION),
      await readServerFacts(client, {
        catalog,
        clients,
        searched: config.extraSearchPath,
        claimsHook: config.claimsHook,
        login: login.name,
      }),
      await readJobFindings(client),
      await readSignUpFindings(client),
      await readRowFunctionFindings(client),
      subject.fileStore ? await readFileFindings(client, subject.fileStore) : [],
      config.channelEnabled ? await missingTriggerSql(client, config.channel) : null,
    ],
  );
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
    missingTriggerSql: triggerSql,
    replicas,
    hosts: hosts.flat(),
  });
  const omitted = await subject.findOmitted();
  const drift = subject.comparesMigrations ? driftFindings(await readDrift(postgres)) : [];
  return sortBySeverity([
    ...checked,
    ...jobs,
    ...signUps,
    ...rowFunctions,
    ...files,
    ...addressFindings(catalog),
    ...graphqlFindings(omitted),
    ...drift,
  ]);
}

/** Reads the findings about schedules and webhooks. Their fixes name the schema in which this database has them. */
async function readJobFindings(client: pg.ClientBase): Promise<readonly DoctorFinding[]> {
  const findings = [...(await readScheduleFindings(client)), ...(await readWebhookFindings(client))];
  if (!(await hasMovedApiNames(client))) return findings;
  return findings.map((finding) => ({ ...finding, fix: moveApiNames(finding.fix) }));
}

function databaseUrls({ databaseUrl, ownerDatabaseUrl, directDatabaseUrl }: Config): (readonly [string, string])[] {
  const urls = {
    DATABASE_URL: databaseUrl,
    OWNER_DATABASE_URL: ownerDatabaseUrl,
    DIRECT_DATABASE_URL: directDatabaseUrl,
  };
  return Object.entries(urls).flatMap(([setting, url]) => (url === null ? [] : [[setting, url] as const]));
}

/** Tables whose path differs from their name. */
function addressFindings(catalog: Catalog): DoctorFinding[] {
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

/** Objects that are missing in the GraphQL schema. */
function graphqlFindings(omitted: readonly OmittedFromGraphql[]): DoctorFinding[] {
  return omitted.map(({ object, reason, fix }) => {
    return { kind: "advice", problem: `GraphQL is served without ${object}: ${reason}.`, fix };
  });
}
