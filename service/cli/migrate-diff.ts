import { readFile, writeFile } from "node:fs/promises";
import type { PostgresUrls } from "#cluster";
import { withSchemaCopy } from "#cluster/archive";
import { type Config, withDatabaseSettings } from "#config";
import { runMigrations } from "#migrate";
import {
  CHANGE_LEVELS,
  CONTRACT_FORMAT,
  type Contract,
  type ContractChange,
  compareWithRequests,
  printChanges,
  type RecordedRequest,
  readRecordedRequests,
} from "#operations/contract";
import { withServiceClient } from "#postgres/client";
import { checkContractOf, readContractOf } from "../contract/database-contract.ts";
import { tryReadDatabaseSettings } from "./command/command-context.ts";
import { type DiffOptions, EXIT_CHANGED } from "./diff-options.ts";

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
    const contract = await readContractOf(directUrl, requestUrl, config);
    await writeFile(save, `${JSON.stringify({ ...contract, requests: await readRequests(directUrl) })}\n`);
    console.log(`wrote ${save}`);
    return 0;
  }
  const before = against === null ? await readContractOf(directUrl, requestUrl, config) : await readSnapshot(against);
  const requests = (against === null ? await readRequests(directUrl) : before.requests) ?? null;
  const after = await withMigratedCopy(postgres, (url) => checkContractOf(url, requestUrl, config, requests ?? []));
  const changes = compareWithRequests(before, after, requests);
  console.log(json ? JSON.stringify(changes, null, 2) : printChanges(changes).trimEnd());
  return changes.some((change) => isSevere(change, failOn)) ? EXIT_CHANGED : 0;
}

/** True if the change is severe. If no requests are recorded, each breaking change may concern some. */
function isSevere({ level, requests }: ContractChange, failOn: DiffOptions["failOn"]): boolean {
  if (failOn === null) return false;
  if (failOn === "used") return level === "breaking" && requests?.length !== 0;
  return CHANGE_LEVELS.indexOf(level) >= CHANGE_LEVELS.indexOf(failOn);
}

function readRequests(url: string): Promise<readonly RecordedRequest[] | null> {
  return withServiceClient(url, readRecordedRequests);
}

/** Runs the work on a copy of the schema to which the pending migrations and the files of `current/` are applied. */
function withMigratedCopy<T>(postgres: PostgresUrls, work: (url: string) => Promise<T>): Promise<T> {
  const warn = (warning: string) => console.error(`warning: ${warning}`);
  return withSchemaCopy(postgres, { withRows: false, warn }, async (settings) => {
    await runMigrations({ name: "current" }, settings);
    return work(settings.url);
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
