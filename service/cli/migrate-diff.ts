import { readFile, writeFile } from "node:fs/promises";
import { loadCatalog } from "#catalog";
import { loginRoleOf, type PostgresUrls } from "#cluster";
import { type Config, withDatabaseSettings } from "#config";
import { pruneToPrivileges } from "#graphql";
import { runMigrations } from "#migrate";
import {
  CHANGE_LEVELS,
  CONTRACT_FORMAT,
  type Contract,
  compareContracts,
  printChanges,
  readContract,
} from "#operations/contract";
import { listRequestRoles } from "#operations/inspect";
import { withServiceClient } from "#postgres/client";
import { makeVersionReader } from "#rest-gateway/resource";
import { tryReadDatabaseSettings } from "./command-context.ts";
import { type DiffOptions, EXIT_CHANGED } from "./diff-options.ts";
import { buildGraphQL } from "./explain-query.ts";
import { withSchemaCopy } from "./schema-copy.ts";

/** Compares the interfaces of the database, or of a snapshot, with those after the pending migrations. Returns the exit code. */
export async function diffInterfaces(
  postgres: PostgresUrls,
  baseConfig: Config,
  { save, against, failOn, json }: DiffOptions,
): Promise<number> {
  // Grafast prints a long warning if the variable is not set.
  process.env.GRAPHILE_ENV ??= "production";
  const { config } = withDatabaseSettings(baseConfig, await tryReadDatabaseSettings(baseConfig));
  const { requestUrl, directUrl } = postgres;
  if (save !== null) {
    await writeFile(save, `${JSON.stringify(await readContractOf(directUrl, requestUrl, config))}\n`);
    console.log(`wrote ${save}`);
    return 0;
  }
  const before = against === null ? await readContractOf(directUrl, requestUrl, config) : await readSnapshot(against);
  const after = await withMigratedCopy(postgres, (url) => readContractOf(url, requestUrl, config));
  const changes = compareContracts(before, after);
  console.log(json ? JSON.stringify(changes, null, 2) : printChanges(changes).trimEnd());
  const severe = failOn === null ? [] : CHANGE_LEVELS.slice(CHANGE_LEVELS.indexOf(failOn));
  return changes.some(({ level }) => severe.includes(level)) ? EXIT_CHANGED : 0;
}

/** Runs the work on a copy of the schema to which the pending migrations and the files of `current/` are applied. */
function withMigratedCopy<T>(postgres: PostgresUrls, work: (url: string) => Promise<T>): Promise<T> {
  return withSchemaCopy(postgres, { withRows: false }, async (settings) => {
    await runMigrations({ name: "current" }, settings);
    return work(settings.url);
  });
}

/** Reads as the owner, for what the login of requests may see: it may not connect to a copy. */
export async function readContractOf(url: string, requestUrl: string, config: Config): Promise<Contract> {
  const loginRole = await loginRoleOf(requestUrl);
  const { schemas, extraSearchPath, anonRole } = config;
  const options = { schemas, extraSearchPath, loginRole, timeZones: false };
  return withServiceClient(url, async (client) => {
    const { catalog } = await loadCatalog(client, options);
    const roles = listRequestRoles(catalog, { anonRole, loginRole });
    const { schema } = await buildGraphQL(catalog, config, { requestUrl: url, ownerUrl: url }, loginRole);
    const versions = await makeVersionReader((read) => read(client))();
    return readContract({ catalog, roles, graphql: await pruneToPrivileges(schema, catalog, roles), versions });
  });
}

async function readSnapshot(file: string): Promise<Contract> {
  const text = await readFile(file, "utf8");
  const contract = parseSnapshot(text);
  if (contract?.format !== CONTRACT_FORMAT)
    throw new Error(`${file} is not a snapshot that this version can read. Write it again with diff --save.`);
  return contract;
}

function parseSnapshot(text: string): Contract | null {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
