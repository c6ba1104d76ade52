import { setTimeout as sleep } from "node:timers/promises";
import type { Caller } from "#accounts/identity";
import type { CatalogTable, RowVisibility } from "#catalog";
import { toHttpError } from "#http";
import type { ReplicatedColumn, ReplicatedRow, RowChange } from "#live/stream";
import { rowVersionsSql } from "#planner";
import { type Database, isQueryCanceled } from "#postgres/database";
import type { Statement, StatementContext } from "#postgres/statement";
import type { CellText } from "./row-filter.ts";

const encodedVersions = new WeakMap<readonly RowVersion[], string>();

const RETRY_PAUSE_MS = 200;
/** The time limit for retries while the database is unavailable. */
const MAX_RETRY_MS = 30_000;

/** The caller that represents a group of subscribers. */
type RowViewer = {
  readonly caller: Caller;
  readonly visibility: RowVisibility;
  /** A condition that is the same for all callers of the role; rows that satisfy it are visible to them. */
  readonly commonCondition: string | null;
};

/** The rows that all callers of a role see, and the others. */
type CommonCheck = { readonly visible: readonly boolean[]; readonly others: readonly RowVersion[] };

/** Returns for each row whether it is visible. */
export type CheckRowVisibility = (
  viewer: RowViewer,
  table: CatalogTable,
  versions: readonly RowVersion[],
) => Promise<readonly boolean[]>;

type VisibilityCheckOptions = {
  readonly database: Pick<Database, "run">;
  readonly contextOf: (caller: Caller) => StatementContext;
  /** The time limit for one check. */
  readonly timeoutMs: number;
};

/** The time limit of checks of the same role and table for a while after a timeout, so that other subscribers are not delayed repeatedly. */
const SHORT_TIMEOUT_MS = 200;
const SLOW_POLICY_MEMORY_MS = 60_000;

/** Makes the check, which queries Postgres as the caller, unless no policy can hide a row. */
export function makeVisibilityCheck({ database, contextOf, timeoutMs }: VisibilityCheckOptions): CheckRowVisibility {
  const slowUntil = new Map<string, number>();

  const check = async (caller: Caller, using: string, table: CatalogTable, versions: readonly RowVersion[]) => {
    const key = `${table.oid} ${caller.role}`;
    const isSlow = (slowUntil.get(key) ?? 0) > performance.now();
    const limit = isSlow ? Math.min(SHORT_TIMEOUT_MS, timeoutMs) : timeoutMs;
    const statement = buildVisibilityQuery(table, using, versions);
    try {
      const { rows } = await database.run(contextOf(caller), statement, { readOnly: true, timeoutMs: limit });
      return rows.map(([isVisible]) => isVisible === "t");
    } catch (error) {
      if (isQueryCanceled(error)) slowUntil.set(key, performance.now() + SLOW_POLICY_MEMORY_MS);
      throw error;
    }
  };

  const commonChecks = new WeakMap<readonly RowVersion[], Map<string, Promise<CommonCheck | null>>>();
  /** Checks once for all groups of a role that check the same rows. Null if it fails, so that each group reports its own failure. */
  const commonCheck = (caller: Caller, condition: string, table: CatalogTable, versions: readonly RowVersion[]) => {
    const byRole = commonChecks.get(versions) ?? new Map<string, Promise<CommonCheck | null>>();
    commonChecks.set(versions, byRole);
    const result =
      byRole.get(caller.role) ??
      retryWhileUnavailable(() => check(caller, condition, table, versions)).then(
        (visible) => ({ visible, others: versions.filter((_, index) => !visible[index]) }),
        () => null,
      );
    byRole.set(caller.role, result);
    return result;
  };

  return async ({ caller, visibility, commonCondition }, table, versions) => {
    if (typeof visibility === "string") return versions.map(() => visibility === "all");
    const common = commonCondition === null ? null : await commonCheck(caller, commonCondition, table, versions);
    if (common?.others.length === 0) return common.visible;
    const rows = common?.others ?? versions;
    const checked = await retryWhileUnavailable(() => check(caller, visibility.using, table, rows));
    if (!common) return checked;
    let next = 0;
    return common.visible.map((isVisible) => isVisible || checked[next++]!);
  };
}

/**
 * Has Postgres apply policies to rows as they were at the change, not as they are now: the policies' condition is evaluated on the row
 * versions, under the table's own name, so that it can be used as Postgres prints it.
 */
function buildVisibilityQuery(table: CatalogTable, using: string, versions: readonly RowVersion[]): Statement {
  return {
    text: `select coalesce((${using}), false)\n${fromRowVersions(table, versions)}`,
    values: [encodeRowVersions(versions, table)],
  };
}

/** Retries a request while the database is unavailable. */
export async function retryWhileUnavailable<Result>(ask: () => Promise<Result>): Promise<Result> {
  const end = performance.now() + MAX_RETRY_MS;
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (toHttpError(error).status !== 503 || performance.now() > end) throw error;
      await sleep(RETRY_PAUSE_MS);
    }
  }
}

/** A row at the time of the change, by column name. */
export type RowVersion = ReadonlyMap<string, CellText>;

/** The FROM item with the rows of `$1`, in their order, under the table's own name. */
export function fromRowVersions(table: CatalogTable, versions: readonly RowVersion[]): string {
  return rowVersionsSql(table, {
    isPresent: (column) => versions.every((version) => version.has(column)),
    jsonNulls: new Set(
      [...table.columns.keys()].filter((name) => versions.some((each) => isJsonNull(each, name, table))),
    ),
  });
}

/** Encodes the value of `$1`, once for all groups that check the same rows. */
export function encodeRowVersions(versions: readonly RowVersion[], table: CatalogTable): string {
  const text =
    encodedVersions.get(versions) ?? `[${versions.map((version) => encodeRowVersion(version, table)).join(",")}]`;
  encodedVersions.set(versions, text);
  return text;
}

/** Encodes a row. Each value is a string that its type parses, except JSON, which would be parsed as a JSON string. */
function encodeRowVersion(version: RowVersion, table: CatalogTable): string {
  const members: string[] = [];
  const jsonNulls: string[] = [];
  for (const [name, cell] of version) {
    if (cell === undefined || cell === null) continue;
    if (isJsonNull(version, name, table)) jsonNulls.push(`${JSON.stringify(name)}:true`);
    else members.push(`${JSON.stringify(name)}:${isJson(name, table) ? cell : JSON.stringify(cell)}`);
  }
  if (jsonNulls.length > 0) members.push(`"":{${jsonNulls.join(",")}}`);
  return `{${members.join(",")}}`;
}

/** True if the value is the null of JSON, which is not the SQL null. */
function isJsonNull(version: RowVersion, column: string, table: CatalogTable): boolean {
  return isJson(column, table) && version.get(column)?.trim() === "null";
}

function isJson(column: string, { columns }: CatalogTable): boolean {
  const type = columns.get(column)?.baseType;
  return type?.schema === "pg_catalog" && (type.name === "json" || type.name === "jsonb");
}

/**
 * Returns the old row as far as the log has it. A partition with replica identity `default` under a root with `full` logs null for all
 * columns except the key: such a row is reduced to its key.
 */
export function readOldRow({ old, relation }: RowChange, { kind, primaryKey }: CatalogTable): ReplicatedRow | null {
  if (!old || kind !== "partitioned table" || relation.replicaIdentity !== "full") return old;
  const isKey = relation.columns.map(({ name }) => primaryKey.includes(name));
  return old.every((cell, at) => cell === null || isKey[at])
    ? old.map((cell, at) => (isKey[at] ? cell : undefined))
    : old;
}

/**
 * True if a column still has the type that it had when the log was written. A change that is delivered late, for example to a client that
 * resumes, may be from before the column was altered: its value then is not of the current type.
 */
export function isUnalteredColumn(table: CatalogTable, { name, typeOid }: ReplicatedColumn): boolean {
  return table.columns.get(name)?.type.oid === typeOid;
}
