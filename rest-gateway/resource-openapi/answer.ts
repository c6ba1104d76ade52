import type { Caller } from "../../engine/caller/caller.ts";
import type { Catalog } from "../../engine/catalog/catalog.ts";
import { exposedSchemas } from "../../engine/catalog/exposed-schemas.ts";
import type { Config } from "../../engine/config/config.ts";
import { ApiError } from "../../engine/errors.ts";
import type { Routes } from "../gateway.ts";
import type { Body, GatewayRequest, GatewayResponse } from "../http.ts";
import { DocumentCache } from "../openapi/document-cache.ts";
import { documentResponse } from "../openapi/document-response.ts";
import { writeDocument } from "../openapi/write.ts";
import { collectionsOf, isVisible } from "../resource/collections.ts";
import { invalid } from "../resource/refusals.ts";
import { matches } from "../resource/send/entity-tag.ts";
import { usualVersion, type Version, type Versions } from "../resource/versions/served.ts";
import { resourceDocument } from "./document.ts";
import type { Choice } from "./subject.ts";

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

type Audience = { readonly role: string; readonly version: number };

export const DOCUMENT_PATH = "/openapi.json";

/** `GET /openapi.json`, `?version=2`: made once for each catalogue, role and version. */
export function documentRoutes({ config, catalog, versions, identify, routes, folders, hasTasks }: Options): Routes {
  const documents = new DocumentCache();
  const addresses = new Set(Object.keys(routes));

  const answer = async (request: GatewayRequest): Promise<GatewayResponse<Body>> => {
    const { role } = await identify(request);
    const { number: version, status } = chooseVersion(request, await versions());
    const isDeprecated = status === "deprecated";
    const current = catalog();
    const asked = { catalog: current, role, version, isDeprecated };
    const { errorBody, publicUrl } = config;
    const only = readChoice(request, current, { role, version });
    const subject = { ...asked, errorBody, publicUrl, routes: addresses, folders, hasTasks, only };
    const make = async () => writeDocument(await resourceDocument(subject));
    const document = await documents.get(JSON.stringify([role, version, isDeprecated, only]), current.version, make);
    const tag = `"${document.digest}"`;
    const headers = {
      "Content-Type": "application/json; charset=utf-8",
      // Weak: it is the same compressed and as text.
      ETag: `W/${tag}`,
      "Cache-Control": "no-cache",
      Vary: "Authorization, Cookie, X-API-Key",
    };
    if (matches(request.headers["if-none-match"], tag)) return { status: 304, headers, body: null };
    return documentResponse(document, request, headers);
  };
  return { [DOCUMENT_PATH]: { GET: answer } };
}

/** `?table=films&table=actors`, by the names in addresses, or `?schema=shop`. Refuses what is not there, or not for the role. */
function readChoice({ rawQuery }: GatewayRequest, catalog: Catalog, audience: Audience): Choice | null {
  const parameters = new URLSearchParams(rawQuery);
  const names = [...new Set(parameters.getAll("table"))].sort();
  if (names.length > 0) {
    const collections = collectionsOf(catalog, audience);
    for (const name of names) {
      const collection = collections.find(name);
      if (!collection || !isVisible(collection)) throw noSuch("table", name);
    }
    return { names };
  }
  const schema = parameters.get("schema");
  if (schema === null) return null;
  if (!exposedSchemas(catalog).some(({ name }) => name === schema)) throw noSuch("schema", schema);
  return { schema };
}

function noSuch(field: string, name: string): ApiError {
  return invalid([{ field, message: `There is none called ${JSON.stringify(name)}.` }]);
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
