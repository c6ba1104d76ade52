import type { Caller } from "#accounts/identity";
import { type Catalog, exposedSchemas } from "#catalog";
import type { Config } from "#config";
import {
  type ErrorBodyShape,
  type GatewayRequest,
  type GatewayResponse,
  type GatewayRoutes,
  HttpError,
  isPathUnder,
  matchesTag,
  publicBaseUrl,
  type ResponseBody,
} from "#http";
import { BATCH_TYPE, TASKS_COLLECTION } from "#rest-gateway/dialect";
import { PRODUCT_NAME } from "#rest-gateway/pages";
import {
  type Collection,
  type Collections,
  collectionsOf,
  isVisibleCollection,
  makeCollections,
  validationError,
} from "#rest-gateway/resource/collections";
import { type ApiVersion, BATCH_COLLECTION, defaultVersion, type ReadVersions } from "#rest-gateway/resource/parse";
import { forEachInSlices } from "#runtime/concurrency";
import { type JsonSchema, makeSchemaOfType } from "../document/json-schema.ts";
import { DocumentCache, documentResponse, type OpenApiDocument, printDocument } from "../document/printed-document.ts";
import { viewSchema } from "../document/visible-schema.ts";
import { collectionPaths } from "./collection-paths.ts";
import components from "./components.json" with { type: "json" };
import {
  errorSchema,
  type PathItem,
  type PathOperation,
  type ResourceErrorStatus,
  resourceErrorRefs,
  resourceErrorResponses,
  rowSchemas,
} from "./components.ts";
import described from "./service-paths.json" with { type: "json" };

/** Makes the OpenAPI 3.1 document of the plain REST interface and of sign-in. */
export async function makeResourceDocument({
  catalog,
  role,
  version,
  errorBody,
  publicUrl,
  routes,
  folders,
  hasTasks,
  isDeprecated,
  filter,
}: ResourceDocumentOptions): Promise<OpenApiDocument> {
  const schema = exposedSchemas(catalog)[0]?.name ?? "";
  const viewer = await viewSchema({ catalog, role, schema, tables: null, mode: "follow-privileges" });
  const typeSchema = makeSchemaOfType(catalog, viewer);
  const collections = makeCollections(catalog, { role, version });
  const visible = await findShown(collections, filter);
  // A path is described once: the rows of a table named tasks have the path of tasks.
  const showsTasks = hasTasks && !visible.some(({ name, key }) => name === TASKS_COLLECTION && key.length > 0);
  const isServed = (address: string) => routes.has(address) || folders.some((folder) => isPathUnder(folder, address));
  return {
    openapi: "3.1.0",
    info: {
      title: PRODUCT_NAME,
      description: `Version ${version} of the plain REST interface, as ${role} sees it.${isDeprecated ? " It is deprecated." : ""}`,
      version: String(version),
    },
    servers: [{ url: publicBaseUrl(publicUrl) || "/" }],
    tags: [...visible.map(({ name, description }) => ({ name, ...(description && { description }) }))],
    security: [{}, ...Object.keys(components.securitySchemes).map((scheme) => ({ [scheme]: [] }))],
    paths: function* () {
      yield* collectionPaths({ collections, shown: visible, typeSchema, hasTasks, isDeprecated });
      if (filter) return;
      yield* servicePaths(isServed);
      if (showsTasks) yield taskPath(version);
      if (!visible.some(({ name }) => name === BATCH_COLLECTION)) yield batchPath(version);
    },
    components: {
      schemas: function* () {
        yield ["error", errorSchema(errorBody)] as const;
        yield* Object.entries(components.schemas);
        for (const collection of withNested(visible, collections)) yield* rowSchemas(collection, typeSchema);
      },
      parameters: () => Object.entries(components.parameters),
      responses: function* () {
        yield* Object.entries(components.responses);
        yield* resourceErrorResponses();
      },
      securitySchemes: components.securitySchemes,
    },
  };
}

async function findShown(collections: Collections, filter: DocumentFilter | null): Promise<readonly Collection[]> {
  const visible: Collection[] = [];
  await forEachInSlices(collections.names(), (name) => {
    const isWanted = filter === null || !("names" in filter) || filter.names.includes(name);
    const collection = isWanted ? collections.find(name)! : null;
    const isOther = filter !== null && "schema" in filter && collection?.table.schema !== filter.schema;
    if (collection && !isOther && isVisibleCollection(collection)) visible.push(collection);
  });
  return visible;
}

/** Adds the collections that are nested in the shown ones. */
function withNested(visible: readonly Collection[], collections: Collections): ReadonlySet<Collection> {
  const nested = visible.flatMap((collection) => collection.nested.map(({ target }) => collections.find(target)!));
  return new Set([...visible, ...nested.filter(isVisibleCollection)]);
}

/** Limits a document to some collections, by name or by schema. */
type DocumentFilter = { readonly names: readonly string[] } | { readonly schema: string };

/** One version of the interface, as one role sees it. */
type ResourceDocumentOptions = {
  readonly catalog: Catalog;
  readonly role: string;
  readonly version: number;
  readonly isDeprecated: boolean;
  /** The filter; null for all collections and the paths of the service. */
  readonly filter: DocumentFilter | null;
  readonly errorBody: ErrorBodyShape;
  /** PUBLIC_URL; null for the host that served the document. */
  readonly publicUrl: string | null;
  /** Paths that are served besides collections. */
  readonly routes: ReadonlySet<string>;
  /** Path prefixes that are served as a whole. */
  readonly folders: readonly string[];
  /** True if `Prefer: respond-async` is available. */
  readonly hasTasks: boolean;
};

/** An operation that is not about rows, as `service-paths.json` describes it. */
type ServiceOperation = {
  readonly operationId: string;
  readonly tag: string;
  readonly summary: string;
  /** Keys of the file's `parameters`. */
  readonly parameters?: readonly string[];
  readonly body?: JsonSchema;
  readonly responses: Readonly<Record<string, { readonly description: string; readonly schema?: JsonSchema }>>;
  /** Statuses of errors, besides those that every operation has. */
  readonly errors?: readonly ResourceErrorStatus[];
};

type ServicePathItem = Readonly<Record<string, ServiceOperation>>;

const PATHS: Readonly<Record<string, ServicePathItem>> = described.paths as object as Record<string, ServicePathItem>;
const PARAMETERS: Readonly<Record<string, object>> = described.parameters;

/** Yields the paths of sign-in, sessions, keys and health, as far as this deployment serves them. */
function* servicePaths(isServed: (path: string) => boolean): Generator<[string, PathItem]> {
  for (const [path, item] of Object.entries(PATHS)) if (isServed(path)) yield [path, toPathItem(item)];
}

/** Returns the path of the task of a request with `Prefer: respond-async`; every version has it. */
function taskPath(version: number): [string, PathItem] {
  return [`/api/v${version}/tasks/{taskId}`, toPathItem(described.taskPath as ServicePathItem)];
}

/** Returns the path for several requests in one transaction; every version has it. */
function batchPath(version: number): [string, PathItem] {
  return [
    `/api/v${version}/${BATCH_COLLECTION}`,
    toPathItem(described.batchPath as ServicePathItem, [JSON_TYPE, BATCH_TYPE]),
  ];
}

const JSON_TYPE = "application/json";

function toPathItem(item: ServicePathItem, bodyTypes: readonly string[] = [JSON_TYPE]): PathItem {
  const operations = Object.entries(item).map(([method, operation]) => [method, toOperation(operation, bodyTypes)]);
  return Object.fromEntries(operations);
}

function toOperation(operation: ServiceOperation, bodyTypes: readonly string[]): PathOperation {
  const { operationId, tag, summary, parameters, body, responses, errors = [] } = operation;
  const described = Object.entries(responses).map(([status, { description, schema }]) => {
    return [status, { description, ...(schema && contentOf(schema, [JSON_TYPE])) }];
  });
  return {
    operationId,
    tags: [tag],
    summary,
    ...(parameters && { parameters: parameters.map((name) => PARAMETERS[name]!) }),
    ...(body && { requestBody: { required: isRequired(body), ...contentOf(body, bodyTypes) } }),
    responses: { ...Object.fromEntries(described), ...resourceErrorRefs(...errors) },
  };
}

function contentOf(schema: JsonSchema, types: readonly string[]) {
  return { content: Object.fromEntries(types.map((type) => [type, { schema }])) };
}

function isRequired({ required, oneOf }: JsonSchema): boolean {
  return Array.isArray(oneOf) || (Array.isArray(required) && required.length > 0);
}

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

/** Serves `GET /openapi.json?version=2`, cached by catalog, role and version. */
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
    const make = async () => printDocument(await makeResourceDocument(options));
    const document = await documents.get(JSON.stringify([role, version, isDeprecated, filter]), current.version, make);
    const tag = `"${document.digest}"`;
    const headers = {
      "Content-Type": "application/json; charset=utf-8",
      // The tag is weak, because compressed and plain responses share it.
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

/** Returns the requested version, if it is not retired. */
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
