import pg from "pg";
import { cacheLookups } from "../../../engine/concurrency/batched-lookup.ts";
import type { AsOwner } from "../../../engine/database/owner-pool.ts";
import { HttpError } from "../../../http/http-error.ts";

/** A row of `api.versions`. */
export type ApiVersion = {
  readonly number: number;
  readonly status: "current" | "supported" | "deprecated" | "retired";
  readonly sunset: Date | null;
  readonly successor: number | null;
  readonly migrationGuide: string | null;
};

/** Cached; returns a promise only when it reads again. */
export type ReadVersions = () => readonly ApiVersion[] | Promise<readonly ApiVersion[]>;

const VERSIONS = `
  select number, status, sunset, successor, migration_guide as "migrationGuide" from api.versions order by number`;

/** The versions of a database without that table. */
const VERSIONS_WITHOUT_TABLE: readonly ApiVersion[] = [
  { number: 1, status: "supported", sunset: null, successor: 2, migrationGuide: null },
  { number: 2, status: "current", sunset: null, successor: null, migrationGuide: null },
];

/** The version of requests that name none. */
export const DEFAULT_VERSION = "1";

/** The default version, or the oldest one that is not retired. */
export function defaultVersion(versions: readonly ApiVersion[]): ApiVersion | undefined {
  const served = versions.filter(({ status }) => status !== "retired");
  return served.find(({ number }) => String(number) === DEFAULT_VERSION) ?? served[0];
}

/** Undefined table or column, invalid schema name, insufficient privilege: the table does not exist for us. */
const MISSING_TABLE_CODES: readonly (string | undefined)[] = ["42P01", "42703", "3F000", "42501"];

/** How long an update of the table may go unnoticed. */
const REMEMBERED_MS = 2_000;
const CACHE_KEY = "all";

export function makeVersionReader(asOwner: AsOwner): ReadVersions {
  const read = () =>
    asOwner((client) => client.query<ApiVersion>(VERSIONS)).then(({ rows }) => rows, orDefaultVersions);
  const cached = cacheLookups<readonly ApiVersion[]>(async () => new Map([[CACHE_KEY, await read()]]), {
    rememberedMs: REMEMBERED_MS,
    max: 1,
  });
  return () => {
    const cachedVersions = cached(CACHE_KEY);
    return cachedVersions instanceof Promise ? cachedVersions.then((versions) => versions!) : cachedVersions!;
  };
}

function orDefaultVersions(error: unknown): readonly ApiVersion[] {
  if (error instanceof pg.DatabaseError && MISSING_TABLE_CODES.includes(error.code)) return VERSIONS_WITHOUT_TABLE;
  throw error;
}

/** The deprecation of a version. */
export type DeprecationNotice = {
  /** `base` is the public path prefix. */
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

/** The error for a retired version, with the path in its successor. */
export function versionRetired(version: ApiVersion, path: string, base: string): HttpError {
  const { headers, body } = deprecationNotice(version)!;
  const guide = version.migrationGuide === null ? "" : ` ${version.migrationGuide}`;
  return new HttpError(410, "VERSION_RETIRED", `${body.message}${guide}`, {
    headers: headers(path, base),
    beside: { deprecation: body },
  });
}

/** `/users` and `/api/v1/users` -> `/api/v2/users` */
function pathInVersion(path: string, version: number): string {
  return path.replace(/^(?:\/api(?:\/v\d+)?)?(?=\/|$)/i, `/api/v${version}`);
}
