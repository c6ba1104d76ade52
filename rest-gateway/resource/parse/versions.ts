import type { IncomingHttpHeaders } from "node:http";
import pg from "pg";
import { type GatewayRequest, HttpError, publicBasePath, readMediaRanges } from "#http";
import { queryApiSchema } from "#postgres/client";
import type { AsOwner } from "#postgres/database";
import { cacheLookups } from "#runtime/concurrency";
import type { ResourceAddress } from "./address.ts";

const JSON_TYPE: NegotiatedType = { contentType: "application/json; charset=utf-8", version: null, links: false };
const HAL: NegotiatedType = { contentType: "application/hal+json; charset=utf-8", version: null, links: true };
/** Accept headers that most clients send, such as axios. */
const COMMON_ACCEPT_HEADERS: ReadonlySet<string> = new Set([
  "*/*",
  "application/json",
  "application/json, text/plain, */*",
]);
const JSON_RANGE = /^application\/json(;|$)/;
const ANY_RANGE = /^(\*|application)\/\*(;|$)/;
const HAL_RANGE = /^application\/hal\+json(;|$)/;
const VENDOR_RANGE = /^application\/vnd(?<name>\.[\w.-]*)\+json(;|$)/;
/** The last name of a vendor's type, from its `v` on, that begins with a digit: `2`, `2x`, `2.1`, `2-beta.1`. */
const VENDOR_VERSION = /^\d[^.-]*(?:\.(?:\d[^.-]*)?)*(?:-|$)/;

type VersionDeployment = { readonly versions: readonly ApiVersion[]; readonly publicUrl: string | null };
type NegotiatedVersion = {
  readonly negotiated: NegotiatedType;
  readonly version: ApiVersion;
  readonly notice: DeprecationNotice | null;
};

/** Chooses the version and media type of the response; deprecated versions add headers. */
export function negotiateVersion(
  request: GatewayRequest,
  address: ResourceAddress,
  parameters: URLSearchParams,
  { versions, publicUrl }: VersionDeployment,
): NegotiatedVersion {
  const negotiated = negotiateType(request.headers.accept);
  const versionRequest = { headers: request.headers, parameters, address, publicUrl, mediaType: negotiated.version };
  const version = chooseVersion(versionRequest, versions);
  const notice = deprecationNotice(version);
  if (notice) request.addResponseHeaders(notice.headers(address.canonical, publicBasePath(publicUrl)));
  return { negotiated, version, notice };
}

type VersionRequest = {
  readonly headers: IncomingHttpHeaders;
  readonly parameters: URLSearchParams;
  readonly address: Pick<ResourceAddress, "version" | "canonical">;
  readonly publicUrl: string | null;
  /** The version in the negotiated media type. */
  readonly mediaType: string | null;
};

/** The version in the path, the query, a header or the media type. If there are several, they must be equal. */
function chooseVersion(request: VersionRequest, versions: readonly ApiVersion[]): ApiVersion {
  const { headers, parameters, address, publicUrl, mediaType } = request;
  const requested = new Set<string>();
  const addVersion = (value: string | readonly string[] | null | undefined) => {
    if (value !== null && value !== undefined) requested.add(String(value).trim());
  };
  addVersion(address.version);
  for (const version of parameters.getAll("version")) addVersion(version);
  addVersion(headers["x-api-version"]);
  addVersion(headers["accept-version"]);
  addVersion(mediaType);
  const [wanted = DEFAULT_VERSION, ...others] = requested;
  if (others.length > 0) {
    const all = [...requested].join(" and ");
    throw new HttpError(400, "VALIDATION_ERROR", `The request names several versions, ${all}: name one.`);
  }
  const version = versions.find(({ number }) => String(number) === wanted);
  if (!version) throw unsupportedVersion(wanted, versions);
  if (version.status === "retired") throw versionRetired(version, address.canonical, publicBasePath(publicUrl));
  return version;
}

function unsupportedVersion(wanted: string, versions: readonly ApiVersion[]): HttpError {
  const supportedVersions = versions.filter(({ status }) => status !== "retired").map(({ number }) => number);
  const message = `Version ${JSON.stringify(wanted)} is not supported. Supported versions: ${supportedVersions.join(", ") || "none"}.`;
  return new HttpError(400, "UNSUPPORTED_VERSION", message, { beside: { supportedVersions } });
}

/** The media type of the response. */
export type NegotiatedType = {
  readonly contentType: string;
  /** `2` of `application/vnd.example.v2+json`; null if the type names no version. */
  readonly version: string | null;
  /** HAL responses have `_links` in each row. */
  readonly links: boolean;
};

/** Chooses the best available type; throws 406 if there is none. */
export function negotiateType(accept: string | undefined): NegotiatedType {
  // An empty Accept header means any type.
  if (accept === undefined || accept.trim() === "" || COMMON_ACCEPT_HEADERS.has(accept)) return JSON_TYPE;
  const ranges = readMediaRanges(accept.toLowerCase());
  // A wildcard does not include types with q=0.
  const isRefused = (named: RegExp) => ranges.some(({ type, quality }) => quality === 0 && named.test(type));
  for (const { type, quality } of ranges) {
    if (quality === 0) continue;
    if (JSON_RANGE.test(type) || (ANY_RANGE.test(type) && !isRefused(JSON_RANGE))) return JSON_TYPE;
    if (HAL_RANGE.test(type) || (ANY_RANGE.test(type) && !isRefused(HAL_RANGE))) return HAL;
    const vendor = VENDOR_RANGE.exec(type);
    if (vendor) {
      const [name] = type.split(";");
      return { contentType: `${name}; charset=utf-8`, version: vendorVersion(vendor.groups!.name!), links: false };
    }
  }
  throw new HttpError(406, "NOT_ACCEPTABLE", "Responses are JSON: accept application/json.");
}

/**
 * Returns the version of a vendor's type. A text that begins as a version does is one, even if no such version exists; a vendor's own
 * name is none.
 */
function vendorVersion(name: string): string | null {
  const at = name.lastIndexOf(".v");
  const text = at < 0 ? "" : name.slice(at + 2);
  return VENDOR_VERSION.test(text) ? text : null;
}

/** A row of `api.versions`. */
export type ApiVersion = {
  readonly number: number;
  readonly status: "current" | "supported" | "deprecated" | "retired";
  readonly sunset: Date | null;
  readonly successor: number | null;
  readonly migrationGuide: string | null;
};

/** Returns the cached versions; returns a promise only when it reads again. */
export type ReadVersions = () => readonly ApiVersion[] | Promise<readonly ApiVersion[]>;

const VERSIONS = `
  select number, status, sunset, successor, migration_guide as "migrationGuide" from api.versions order by number`;

/** The versions of a database without that table. */
const VERSIONS_WITHOUT_TABLE: readonly ApiVersion[] = [
  { number: 1, status: "supported", sunset: null, successor: 2, migrationGuide: null },
  { number: 2, status: "current", sunset: null, successor: null, migrationGuide: null },
];

/** The version of requests that name none. */
const DEFAULT_VERSION = "1";

/** The default version, or the oldest one that is not retired. */
export function defaultVersion(versions: readonly ApiVersion[]): ApiVersion | undefined {
  const served = versions.filter(({ status }) => status !== "retired");
  return served.find(({ number }) => String(number) === DEFAULT_VERSION) ?? served[0];
}

/** Undefined table or column, invalid schema name, insufficient privilege: the table does not exist for us. */
const MISSING_TABLE_CODES: readonly (string | undefined)[] = ["42P01", "42703", "3F000", "42501"];

/** The time for which an update of the table may go unnoticed. */
const REMEMBERED_MS = 2_000;
const CACHE_KEY = "all";

export function makeVersionReader(asOwner: AsOwner): ReadVersions {
  const read = () =>
    asOwner((client) => queryApiSchema<ApiVersion>(client, VERSIONS)).then(({ rows }) => rows, orDefaultVersions);
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
  /** Returns the headers; `base` is the public path prefix. */
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

/** Converts `/users` and `/api/v1/users` to `/api/v2/users`. */
function pathInVersion(path: string, version: number): string {
  return path.replace(/^(?:\/api(?:\/v\d+)?)?(?=\/|$)/i, `/api/v${version}`);
}
