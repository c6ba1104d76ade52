import { exposedSchemas } from "../../engine/catalog/exposed-schemas.ts";
import { inSlices } from "../../engine/catalog/slices.ts";
import { isUnder } from "../gateway.ts";
import { makeTypeSchemas } from "../openapi/table-document/type-schema.ts";
import { makeViewer } from "../openapi/viewer.ts";
import type { Document } from "../openapi/write.ts";
import { publicBase } from "../public-address.ts";
import { type Collection, type Collections, isVisible, makeCollections } from "../resource/collections.ts";
import { TASKS } from "../tasks/task-interface.ts";
import { collectionPaths } from "./collection-paths.ts";
import { errorResponses, errorSchema } from "./error-responses.ts";
import { sharedParameters } from "./parameters.ts";
import { rowSchemas } from "./row-schemas.ts";
import { ACCEPTED, SERVICE_SCHEMAS, servicePaths, taskPath } from "./service-paths.ts";
import type { Choice, Subject } from "./subject.ts";

/** The conventional interface and signing in, in OpenAPI 3.1. */
export async function resourceDocument({
  catalog,
  role,
  version,
  errorBody,
  publicUrl,
  routes,
  folders,
  hasTasks,
  isDeprecated,
  only,
}: Subject): Promise<Document> {
  const schema = exposedSchemas(catalog)[0]?.name ?? "";
  const viewer = await makeViewer({ catalog, role, schema, tables: null, mode: "follow-privileges" });
  const typeSchema = makeTypeSchemas(catalog, viewer);
  const collections = makeCollections(catalog, { role, version });
  const shown = await findShown(collections, only);
  // One address cannot be described twice: rows of a table that is called tasks lie where tasks do.
  const showsTasks = hasTasks && !shown.some(({ name, key }) => name === TASKS && key.length > 0);
  const isServed = (address: string) => routes.has(address) || folders.some((folder) => isUnder(folder, address));
  return {
    openapi: "3.1.0",
    info: {
      title: "Content service",
      description: `Version ${version} of the conventional interface, as ${role} sees it.${isDeprecated ? " It is deprecated." : ""}`,
      version: String(version),
    },
    servers: [{ url: publicBase(publicUrl) || "/" }],
    tags: [...shown.map(({ name, description }) => ({ name, ...(description && { description }) }))],
    security: [{}, ...Object.keys(SECURITY_SCHEMES).map((scheme) => ({ [scheme]: [] }))],
    paths: function* () {
      yield* collectionPaths({ collections, shown, typeSchema, hasTasks, isDeprecated });
      if (only) return;
      yield* servicePaths(isServed);
      if (showsTasks) yield taskPath(version);
    },
    components: {
      schemas: function* () {
        yield ["error", errorSchema(errorBody)] as const;
        yield* SERVICE_SCHEMAS;
        for (const collection of withNested(shown, collections)) yield* rowSchemas(collection, typeSchema);
      },
      parameters: sharedParameters,
      responses: function* () {
        yield ACCEPTED;
        yield* errorResponses();
      },
      securitySchemes: SECURITY_SCHEMES,
    },
  };
}

async function findShown(collections: Collections, only: Choice | null): Promise<readonly Collection[]> {
  const shown: Collection[] = [];
  await inSlices(collections.names(), (name) => {
    const isWanted = only === null || !("names" in only) || only.names.includes(name);
    const collection = isWanted ? collections.find(name)! : null;
    const isOther = only !== null && "schema" in only && collection?.table.schema !== only.schema;
    if (collection && !isOther && isVisible(collection)) shown.push(collection);
  });
  return shown;
}

/** Rows that lie within those that are shown are described with them. */
function withNested(shown: readonly Collection[], collections: Collections): ReadonlySet<Collection> {
  const nested = shown.flatMap((collection) => collection.nested.map(({ target }) => collections.find(target)!));
  return new Set([...shown, ...nested.filter(isVisible)]);
}

const SECURITY_SCHEMES = {
  bearer: { type: "http", scheme: "bearer", bearerFormat: "JWT", description: "The access token of a signed-in user" },
  apiKey: { type: "apiKey", in: "header", name: "X-API-Key", description: "A key of this deployment" },
  basic: { type: "http", scheme: "basic", description: "Name and password, over HTTPS alone" },
  session: { type: "apiKey", in: "cookie", name: "SESSION", description: "Of who signed in by /api/auth/login" },
};
