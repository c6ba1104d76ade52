import type { IncomingHttpHeaders } from "node:http";
import { ApiError } from "../../../engine/errors.ts";
import type { Address } from "../parse/address.ts";
import { retirement } from "./notice.ts";
import { USUAL_VERSION, type Version } from "./served.ts";

type Said = {
  readonly headers: IncomingHttpHeaders;
  readonly parameters: URLSearchParams;
  readonly address: Pick<Address, "version" | "canonical">;
  /** What stands before the path for clients. */
  readonly base: string;
  /** Of the media type that was agreed on. */
  readonly mediaType: string | null;
};

/**
 * The version that is asked for: in the path, the query, a header or the media type. Whoever asks in several ways has to
 * ask for one version in all of them.
 */
export function chooseVersion(said: Said, versions: readonly Version[]): Version {
  const { headers, parameters, address, base, mediaType } = said;
  const wishes = [
    address.version,
    ...parameters.getAll("version"),
    textOf(headers["x-api-version"]),
    textOf(headers["accept-version"]),
    mediaType,
  ].filter((wish) => wish !== null);
  const asked = [...new Set(wishes.map((wish) => wish.trim()))];
  if (asked.length > 1) {
    throw new ApiError(400, "VALIDATION_ERROR", `Ask for one version: this request asks for ${asked.join(" and ")}.`);
  }
  const wanted = asked[0] ?? USUAL_VERSION;
  const version = versions.find(({ number }) => String(number) === wanted);
  if (!version) throw unsupported(wanted, versions);
  if (version.status === "retired") throw retirement(version, address.canonical, base);
  return version;
}

function textOf(header: string | readonly string[] | undefined): string | null {
  return header === undefined ? null : String(header);
}

function unsupported(wanted: string, versions: readonly Version[]): ApiError {
  const supportedVersions = versions.filter(({ status }) => status !== "retired").map(({ number }) => number);
  const message = `There is no version ${JSON.stringify(wanted)}; there is ${supportedVersions.join(", ") || "none"}.`;
  return new ApiError(400, "UNSUPPORTED_VERSION", message, { beside: { supportedVersions } });
}
