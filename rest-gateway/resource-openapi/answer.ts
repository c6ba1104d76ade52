import { hash } from "node:crypto";
import type { Caller } from "../../engine/caller/caller.ts";
import type { Catalog } from "../../engine/catalog/catalog.ts";
import type { Config } from "../../engine/config/config.ts";
import { ApiError } from "../../engine/errors.ts";
import type { Routes } from "../gateway.ts";
import type { GatewayRequest, GatewayResponse } from "../http.ts";
import { DocumentCache } from "../openapi/document-cache.ts";
import { writeDocument } from "../openapi/write.ts";
import { matches } from "../resource/send/entity-tag.ts";
import { usualVersion, type Version, type Versions } from "../resource/versions/served.ts";
import { resourceDocument } from "./document.ts";

type Options = {
  readonly config: Pick<Config, "errorBody" | "publicUrl">;
  readonly catalog: () => Catalog;
  readonly versions: Versions;
  readonly identify: (request: GatewayRequest) => Caller | Promise<Caller>;
  /** All addresses besides collections. */
  readonly routes: Routes;
  /** Those that look at the rest of the address themselves. */
  readonly folders: readonly string[];
  readonly hasTasks: boolean;
};

export const DOCUMENT_PATH = "/openapi.json";

/** `GET /openapi.json`, `?version=2`: made once for each catalogue, role and version. */
export function documentRoutes({ config, catalog, versions, identify, routes, folders, hasTasks }: Options): Routes {
  const documents = new DocumentCache();
  const tags = new WeakMap<Buffer, string>();
  const addresses = new Set(Object.keys(routes));

  const tagOf = (text: Buffer): string => {
    const tag = tags.get(text) ?? `"${hash("sha256", text, "hex")}"`;
    tags.set(text, tag);
    return tag;
  };

  const answer = async (request: GatewayRequest): Promise<GatewayResponse> => {
    const { role } = await identify(request);
    const { number: version, status } = chooseVersion(request, await versions());
    const isDeprecated = status === "deprecated";
    const current = catalog();
    const asked = { catalog: current, role, version, isDeprecated };
    const { errorBody, publicUrl } = config;
    const subject = { ...asked, errorBody, publicUrl, routes: addresses, folders, hasTasks };
    const make = async () => writeDocument(await resourceDocument(subject));
    const text = await documents.get(JSON.stringify([role, version, isDeprecated]), current.version, make);
    const headers = {
      "Content-Type": "application/json; charset=utf-8",
      ETag: tagOf(text),
      "Cache-Control": "no-cache",
      Vary: "Authorization, Cookie, X-API-Key",
    };
    if (matches(request.headers["if-none-match"], headers.ETag)) return { status: 304, headers, body: null };
    return { status: 200, headers, body: text };
  };
  return { [DOCUMENT_PATH]: { GET: answer } };
}

/** Of those that are still served. */
function chooseVersion({ rawQuery }: GatewayRequest, versions: readonly Version[]): Version {
  const served = versions.filter(({ status }) => status !== "retired");
  const asked = new URLSearchParams(rawQuery).get("version");
  const version = asked === null ? usualVersion(versions) : served.find(({ number }) => String(number) === asked);
  if (version) return version;
  const message =
    asked === null ? "No version is served." : `There is no document of version ${JSON.stringify(asked)}.`;
  throw new ApiError(400, "UNSUPPORTED_VERSION", message, {
    beside: { supportedVersions: served.map(({ number }) => number) },
  });
}
