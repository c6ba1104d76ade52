import type { IncomingHttpHeaders } from "node:http";
import { ApiError } from "../../../engine/errors.ts";
import { publicPath } from "../../public-address.ts";
import type { Address } from "../parse/address.ts";
import { retirement } from "./notice.ts";
import { USUAL_VERSION, type Version } from "./served.ts";

type Said = {
  readonly headers: IncomingHttpHeaders;
  readonly parameters: URLSearchParams;
  readonly address: Pick<Address, "version" | "canonical">;
  readonly publicUrl: string | null;
  /** Of the media type that was agreed on. */
  readonly mediaType: string | null;
};

/**
 * The version that is asked for: in the path, the query, a header or the media type. Whoever asks in several ways has to
 * ask for one version in all of them.
 */
export function chooseVersion(said: Said, versions: readonly Version[]): Version {
  const { headers, parameters, address, publicUrl, mediaType } = said;
  const asked = new Set<string>();
  const ask = (wish: string | readonly string[] | null | undefined) => {
    if (wish !== null && wish !== undefined) asked.add(String(wish).trim());
  };
  ask(address.version);
  for (const wish of parameters.getAll("version")) ask(wish);
  ask(headers["x-api-version"]);
  ask(headers["accept-version"]);
  ask(mediaType);
  const [wanted = USUAL_VERSION, ...others] = asked;
  if (others.length > 0) {
    const all = [...asked].join(" and ");
    throw new ApiError(400, "VALIDATION_ERROR", `Ask for one version: this request asks for ${all}.`);
  }
  const version = versions.find(({ number }) => String(number) === wanted);
  if (!version) throw unsupported(wanted, versions);
  if (version.status === "retired") throw retirement(version, address.canonical, publicPath(publicUrl));
  return version;
}

function unsupported(wanted: string, versions: readonly Version[]): ApiError {
  const supportedVersions = versions.filter(({ status }) => status !== "retired").map(({ number }) => number);
  const message = `Version ${JSON.stringify(wanted)} is not supported. Supported versions: ${supportedVersions.join(", ") || "none"}.`;
  return new ApiError(400, "UNSUPPORTED_VERSION", message, { beside: { supportedVersions } });
}
