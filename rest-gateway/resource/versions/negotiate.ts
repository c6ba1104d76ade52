import type { IncomingHttpHeaders } from "node:http";
import { ApiError } from "../../../engine/errors.ts";
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
/** What most clients send, axios among them. */
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

/** In which version and which type a request is answered; where that version goes away, the answer says so. */
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
  /** Of the media type that was agreed on. */
  readonly mediaType: string | null;
};

/**
 * The version that is asked for: in the path, the query, a header or the media type. Whoever asks in several ways has to
 * ask for one version in all of them.
 */
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
    throw new ApiError(400, "VALIDATION_ERROR", `The request names several versions, ${all}: name one.`);
  }
  const version = versions.find(({ number }) => String(number) === wanted);
  if (!version) throw unsupportedVersion(wanted, versions);
  if (version.status === "retired") throw versionRetired(version, address.canonical, publicBasePath(publicUrl));
  return version;
}

function unsupportedVersion(wanted: string, versions: readonly ApiVersion[]): ApiError {
  const supportedVersions = versions.filter(({ status }) => status !== "retired").map(({ number }) => number);
  const message = `Version ${JSON.stringify(wanted)} is not supported. Supported versions: ${supportedVersions.join(", ") || "none"}.`;
  return new ApiError(400, "UNSUPPORTED_VERSION", message, { beside: { supportedVersions } });
}

/** In which of the types that the client takes it is answered. */
export type NegotiatedType = {
  readonly contentType: string;
  /** `2` of `application/vnd.example.v2+json`, `2.1` of `v2.1`, which is none that is served; null where the type names none. */
  readonly version: string | null;
  /** HAL has links in each row. */
  readonly links: boolean;
};

/** The best of the types that can be made. Refuses when there is none. */
export function negotiateType(accept: string | undefined): NegotiatedType {
  // An empty field says as little as none.
  if (accept === undefined || accept.trim() === "" || COMMON_ACCEPT_HEADERS.has(accept)) return JSON_TYPE;
  const ranges = readMediaRanges(accept.toLowerCase());
  // What is named and refused is not among all that is taken besides.
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
  throw new ApiError(406, "NOT_ACCEPTABLE", "Responses are JSON: accept application/json.");
}
