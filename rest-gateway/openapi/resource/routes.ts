import { type Catalog, exposedSchemas } from "../../../engine/catalog/catalog.ts";
import type { Config } from "../../../engine/config/config.ts";
import type { Caller } from "../../../engine/identity/caller.ts";
import { HttpError } from "../../../http/http-error.ts";
import { matchesTag } from "../../../http/tagged-content.ts";
import type { GatewayRequest } from "../../http/request.ts";
import type { GatewayResponse, ResponseBody } from "../../http/response.ts";
import type { GatewayRoutes } from "../../http/router.ts";
import { collectionsOf, isVisibleCollection } from "../../resource/collections.ts";
import { validationError } from "../../resource/errors.ts";
import { type ApiVersion, defaultVersion, type ReadVersions } from "../../resource/versions.ts";
import { DocumentCache, documentResponse, writeDocument } from "../written-document.ts";
import { type DocumentFilter, makeResourceDocument } from "./document.ts";

type ResourceOpenApiOptions = {
  readonly config: Pick<Config, "errorBody" | "publicUrl">;
  readonly catalog: () => Catalog;
  readonly versions: ReadVersions;
  readonly identify: (request: GatewayRequest) => Caller | Promise<Caller>;
  /** The routes besides collections. */
  readonly routes: GatewayRoutes;
  /** Prefixes of routes that resolve the rest of the path themselves. */
  readonly folders: readonly string[];
  readonly hasTasks: boolean;
};

type DocumentAudience = { readonly role: string; readonly version: number };

export const OPENAPI_PATH = "/openapi.json";

/** `GET /openapi.json?version=2`: cached by catalog, role and version. */
export function openApiRoutes({
  config,
  catalog,
  versions,
  identify,
  routes,
  folders,
  hasTasks,
}: ResourceOpenApiOptions): GatewayRoutes {
  const documents = new DocumentCache();
  const addresses = new Set(Object.keys(routes));

  const respond = async (request: GatewayRequest): Promise<GatewayResponse<ResponseBody>> => {
    const { role } = await identify(request);
    const { number: version, status } = chooseDocumentVersion(request, await versions());
    const isDeprecated = status === "deprecated";
    const current = catalog();
    const common = { catalog: current, role, version, isDeprecated };
    const { errorBody, publicUrl } = config;
    const filter = readDocumentFilter(request, current, { role, version });
    const options = { ...common, errorBody, publicUrl, routes: addresses, folders, hasTasks, filter };
    const make = async () => writeDocument(await makeResourceDocument(options));
    const document = await documents.get(JSON.stringify([role, version, isDeprecated, filter]), current.version, make);
    const tag = `"${document.digest}"`;
    const headers = {
      "Content-Type": "application/json; charset=utf-8",
      // Weak, because compressed and plain responses share it.
      ETag: `W/${tag}`,
      "Cache-Control": "no-cache",
      Vary: "Authorization, Cookie, X-API-Key",
    };
    if (matchesTag(request.headers["if-none-match"], tag)) return { status: 304, headers, body: null };
    return documentResponse(document, request, headers);
  };
  return { [OPENAPI_PATH]: { GET: respond } };
}

/**
 * Parses `?table=films&table=actors` or `?schema=shop`. Throws for names that do not exist or are invisible to the
 * role.
 */
function readDocumentFilter(
  { rawQuery }: GatewayRequest,
  catalog: Catalog,
  audience: DocumentAudience,
): DocumentFilter | null {
  const parameters = new URLSearchParams(rawQuery);
  const names = [...new Set(parameters.getAll("table"))].sort();
  if (names.length > 0) {
    const collections = collectionsOf(catalog, audience);
    for (const name of names) {
      const collection = collections.find(name);
      if (!collection || !isVisibleCollection(collection)) throw unknownName("table", name);
    }
    return { names };
  }
  const schema = parameters.get("schema");
  if (schema === null) return null;
  if (!exposedSchemas(catalog).some(({ name }) => name === schema)) throw unknownName("schema", schema);
  return { schema };
}

function unknownName(field: string, name: string): HttpError {
  return validationError([{ field, message: `There is none called ${JSON.stringify(name)}.` }]);
}

/** The requested version, if it is not retired. */
function chooseDocumentVersion({ rawQuery }: GatewayRequest, versions: readonly ApiVersion[]): ApiVersion {
  const served = versions.filter(({ status }) => status !== "retired");
  const requested = new URLSearchParams(rawQuery).get("version");
  const version =
    requested === null ? defaultVersion(versions) : served.find(({ number }) => String(number) === requested);
  if (version) return version;
  const message =
    requested === null ? "All versions are retired." : `Version ${JSON.stringify(requested)} has no document.`;
  throw new HttpError(400, "UNSUPPORTED_VERSION", message, {
    beside: { supportedVersions: served.map(({ number }) => number) },
  });
}
