import pg from "pg";
import { askSeldom } from "../../../engine/ask-seldom.ts";
import type { AsOwner } from "../../../engine/database/as-owner.ts";

/** A row of `api.versions`. */
export type Version = {
  readonly number: number;
  readonly status: "current" | "supported" | "deprecated" | "retired";
  readonly sunset: Date | null;
  readonly successor: number | null;
  readonly migrationGuide: string | null;
};

/** Known without waiting for most of the time. */
export type Versions = () => readonly Version[] | Promise<readonly Version[]>;

const VERSIONS = `
  select number, status, sunset, successor, migration_guide as "migrationGuide" from api.versions order by number`;

/** What is served where the database has no such table. */
const WITHOUT_TABLE: readonly Version[] = [
  { number: 1, status: "supported", sunset: null, successor: 2, migrationGuide: null },
  { number: 2, status: "current", sunset: null, successor: null, migrationGuide: null },
];

/** Where none is asked for. */
export const USUAL_VERSION = "1";

/** That one; where it is retired, the oldest of those that are still served. */
export function usualVersion(versions: readonly Version[]): Version | undefined {
  const served = versions.filter(({ status }) => status !== "retired");
  return served.find(({ number }) => String(number) === USUAL_VERSION) ?? served[0];
}

/** Undefined table, undefined column, invalid schema name, insufficient privilege: the database is not ours. */
const NOT_THERE: readonly (string | undefined)[] = ["42P01", "42703", "3F000", "42501"];

/** So long may an update of the table remain unseen. */
const REMEMBERED_MS = 2_000;
const ALL = "all";

export function readVersions(asOwner: AsOwner): Versions {
  const read = () => asOwner((client) => client.query<Version>(VERSIONS)).then(({ rows }) => rows, orWithoutTable);
  const seldom = askSeldom<readonly Version[]>(async () => new Map([[ALL, await read()]]), {
    rememberedMs: REMEMBERED_MS,
    most: 1,
  });
  return () => {
    const known = seldom(ALL);
    return known instanceof Promise ? known.then((versions) => versions!) : known!;
  };
}

function orWithoutTable(error: unknown): readonly Version[] {
  if (error instanceof pg.DatabaseError && NOT_THERE.includes(error.code)) return WITHOUT_TABLE;
  throw error;
}
