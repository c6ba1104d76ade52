import pg from "pg";
import { cacheLookups } from "../../../engine/concurrency/batched-lookup.ts";
import type { AsOwner } from "../../../engine/database/owner-pool.ts";
import { ApiError } from "../../../engine/errors.ts";

/** A row of `api.versions`. */
export type ApiVersion = {
  readonly number: number;
  readonly status: "current" | "supported" | "deprecated" | "retired";
  readonly sunset: Date | null;
  readonly successor: number | null;
  readonly migrationGuide: string | null;
};

/** Known without waiting for most of the time. */
export type ReadVersions = () => readonly ApiVersion[] | Promise<readonly ApiVersion[]>;

const VERSIONS = `
  select number, status, sunset, successor, migration_guide as "migrationGuide" from api.versions order by number`;

/** What is served where the database has no such table. */
const VERSIONS_WITHOUT_TABLE: readonly ApiVersion[] = [
  { number: 1, status: "supported", sunset: null, successor: 2, migrationGuide: null },
  { number: 2, status: "current", sunset: null, successor: null, migrationGuide: null },
];

/** Where none is asked for. */
export const DEFAULT_VERSION = "1";

/** That one; where it is retired, the oldest of those that are still served. */
export function defaultVersion(versions: readonly ApiVersion[]): ApiVersion | undefined {
  const served = versions.filter(({ status }) => status !== "retired");
  return served.find(({ number }) => String(number) === DEFAULT_VERSION) ?? served[0];
}

/** Undefined table, undefined column, invalid schema name, insufficient privilege: the database is not ours. */
const MISSING_TABLE_CODES: readonly (string | undefined)[] = ["42P01", "42703", "3F000", "42501"];

/** So long may an update of the table remain unseen. */
const REMEMBERED_MS = 2_000;
const CACHE_KEY = "all";

export function makeVersionReader(asOwner: AsOwner): ReadVersions {
  const read = () =>
    asOwner((client) => client.query<ApiVersion>(VERSIONS)).then(({ rows }) => rows, orDefaultVersions);
  const cached = cacheLookups<readonly ApiVersion[]>(async () => new Map([[CACHE_KEY, await read()]]), {
    rememberedMs: REMEMBERED_MS,
    most: 1,
  });
  return () => {
    const known = cached(CACHE_KEY);
    return known instanceof Promise ? known.then((versions) => versions!) : known!;
  };
}

function orDefaultVersions(error: unknown): readonly ApiVersion[] {
  if (error instanceof pg.DatabaseError && MISSING_TABLE_CODES.includes(error.code)) return VERSIONS_WITHOUT_TABLE;
  throw error;
}

/** What is said of a version that goes away; null for one that stays. */
export type DeprecationNotice = {
  /** The path is that which was asked for; the base stands before it for clients. */
  headers(path: string, base: string): Readonly<Record<string, string>>;
  readonly body: Deprecation;
};

type Deprecation = {
  readonly deprecated: true;
  readonly message: string;
  readonly sunset: string | null;
  readonly migrationGuide: string | null;
};

export function deprecationNotice(version: ApiVersion): DeprecationNotice | null {
  const { number, status, sunset, successor, migrationGuide } = version;
  if (status !== "deprecated" && status !== "retired") return null;
  const isOver = status === "retired";
  const end = sunset === null ? "" : ` ${isOver ? "since" : "and ends on"} ${sunset.toISOString().slice(0, 10)}`;
  const move = successor === null ? "" : ` Move to version ${successor}.`;
  const message = `Version ${number} is ${isOver ? "retired" : "deprecated"}${end}.${move}`;
  const headers = {
    "X-API-Warn": message,
    ...(sunset !== null && { "X-API-Sunset": sunset.toUTCString() }),
  };
  return {
    headers: (path, base) => ({
      ...headers,
      ...(successor !== null && { Link: `<${base}${pathInVersion(path, successor)}>; rel=successor-version` }),
    }),
    body: { deprecated: true, message, sunset: sunset?.toISOString() ?? null, migrationGuide },
  };
}

/** Whoever asks for what is no longer served is told where to go. */
export function versionRetired(version: ApiVersion, path: string, base: string): ApiError {
  const { headers, body } = deprecationNotice(version)!;
  const guide = version.migrationGuide === null ? "" : ` ${version.migrationGuide}`;
  return new ApiError(410, "VERSION_RETIRED", `${body.message}${guide}`, {
    headers: headers(path, base),
    beside: { deprecation: body },
  });
}

/** `/users` and `/api/v1/users` -> `/api/v2/users` */
function pathInVersion(path: string, version: number): string {
  return path.replace(/^(?:\/api(?:\/v\d+)?)?(?=\/|$)/i, `/api/v${version}`);
}
