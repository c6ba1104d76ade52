import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type pg from "pg";
import { withServiceClient } from "#postgres/client";
import { DB_FOLDER, type MigrationHistory } from "./committed-migrations.ts";
import { splitStatements } from "./split-statements.ts";

const HAS_NODES = "select pg_catalog.to_regclass('pg_catalog.pg_dist_local_group') is not null as \"hasNodes\"";
/** The group of the coordinator is 0. */
const LOCAL_GROUP = 'select groupid as "group" from pg_catalog.pg_dist_local_group';

/** Files of SQL, each statement of which has to be a transaction of its own. */
const ROLES = "citus/roles.sql";
const FUNCTIONS = "citus/functions.sql";

/** True on the coordinator of a Citus cluster. Throws on a worker, which refuses definitions or keeps them to itself. */
async function isCitusCoordinator(client: pg.ClientBase): Promise<boolean> {
  const [server] = (await client.query<{ hasNodes: boolean }>(HAS_NODES)).rows;
  if (!server!.hasNodes) return false;
  const [node] = (await client.query<{ group: number }>(LOCAL_GROUP)).rows;
  if (node && node.group !== 0) {
    throw new Error(
      "The database is on a worker of Citus. Nothing was changed. Set OWNER_DATABASE_URL to the coordinator, which takes definitions.",
    );
  }
  return true;
}

const ALL_NODES: Readonly<Record<string, string>> = {};
const COORDINATOR_ONLY: Readonly<Record<string, string>> = { "citus.enable_ddl_propagation": "off" };

/**
 * Settings of the session that applies migrations of the history. The tables of a release stay on the coordinator: Citus would send
 * definitions to the workers as the current role, and fails for an owner of a function who may not log in there. The definitions of a
 * project are sent to all nodes.
 */
export function citusSettings(
  history: MigrationHistory["name"],
  isCoordinator: boolean,
): Readonly<Record<string, string>> {
  return isCoordinator && history !== "project" ? COORDINATOR_ONLY : ALL_NODES;
}

/** Returns true on a coordinator, where the session's definitions then stay, as those of a release do. */
export async function stayOnCoordinator(client: pg.ClientBase): Promise<boolean> {
  const isCoordinator = await isCitusCoordinator(client);
  for (const [name, value] of Object.entries(citusSettings("platform", isCoordinator))) {
    await client.query("select pg_catalog.set_config($1, $2, false)", [name, value]);
  }
  return isCoordinator;
}

/** Creates on all nodes what the migrations of the history need there: the roles, and for a project the functions of its policies. */
export async function prepareNodes(url: string, history: MigrationHistory["name"]): Promise<void> {
  const files = history === "project" ? [ROLES, FUNCTIONS] : [ROLES];
  const texts = await Promise.all(files.map((file) => readFile(join(DB_FOLDER, file), "utf8")));
  await withServiceClient(url, async (client) => {
    for (const { sql } of texts.flatMap(splitStatements)) await client.query(sql);
  });
}

/** Throws on Citus: the copy has one node, on which shards, their locks and their times cannot be observed. */
export async function refuseRehearsalOnCitus(client: pg.ClientBase): Promise<void> {
  if (!(await isCitusCoordinator(client))) return;
  throw new Error(
    "Migrations cannot be rehearsed on Citus: the copy would be one database without the shards, and would say nothing of their locks. " +
      "Rehearse on a cluster of your own with the same nodes, by applying the migrations there.",
  );
}
