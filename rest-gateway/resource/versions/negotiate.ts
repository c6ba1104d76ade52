import type { IncomingHttpHeaders } from "node:http";
import { HttpError } from "../../../http/http-error.ts";
import { readMediaRanges } from "../../http/content-negotiation.ts";
import { publicBasePath } from "../../http/public-url.ts";
import type { GatewayRequest } from "../../http/request.ts";
import type { ResourceAddress } from "../parse/address.ts";
import {
  type ApiVersion,
  DEFAULT_VERSION,
  type DeprecationNotice,
  deprecationNotice,
  versionRetired,
} from "./versions.ts";

const JSON_TYPE: NegotiatedType = { contentType: "application/json; charset=utf-8", version: null, links: false };
const HAL: NegotiatedType = { contentType: "application/hal+json; charset=utf-8", version: null, links: true };
/** The Accept headers of most clients, such as axios. */
const COMMON_ACCEPT_HEADERS: ReadonlySet<string> = new Set([
  "*/*",
  "application/json",
  "application/json, text/plain, */*",
]);
const JSON_RANGE = /^application\/json(;|$)/;
const ANY_RANGE = /^(\*|application)\/\*(;|$)/;
const HAL_RANGE = /^application\/hal\+json(;|$)/;
const VENDOR_RANGE = /^application\/vnd\.[\w.-]*?(?:\.v(?<version>\d+(?:\.\d+)*(?:-[\w.]+)?))?\+json(;|$)/;

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
  const addVersion = (wish: string | readonly string[] | null | undefined) => {
    if (wish !== null && wish !== undefined) requested.add(String(wish).trim());
  };
  addVersion(address.version);
  for (const wish of parameters.getAll("version")) addVersion(wish);
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
      return { contentType: `${name}; charset=utf-8`, version: vendor.groups?.version ?? null, links: false };
    }
  }
  throw new HttpError(406, "NOT_ACCEPTABLE", "Responses are JSON: accept application/json.");
}
