import { readComment } from "../comments.ts";
import { makeSchemaOfType } from "../json-schema.ts";
import { type TableDocumentOptions, viewSchema } from "../visible-schema.ts";
import type { OpenApiDocument } from "../written-document.ts";
import components from "./components.json" with { type: "json" };
import {
  EMPTY_RESPONSE,
  makeRowSchemas,
  rowFilters,
  sharedParameters,
  tableErrorResponses,
  tableResponses,
} from "./components.ts";
import { routinePaths } from "./routine-paths.ts";
import { tablePaths } from "./table-paths.ts";

/** The table interface in OpenAPI 3.1. */
export async function makeTableDocument(subject: TableDocumentOptions): Promise<OpenApiDocument> {
  const { catalog, serverUrl, securityActive, version } = subject;
  const viewer = await viewSchema(subject);
  const typeSchema = makeSchemaOfType(catalog, viewer);
  const rowSchemas = makeRowSchemas({ viewer, catalog, typeSchema });
  const { summary, description } = readComment(viewer.schema?.comment ?? null);
  return {
    openapi: "3.1.0",
    info: {
      title: summary ?? "Table interface",
      description: summary ? description : "Tables, views and functions, made from the database.",
      version,
    },
    externalDocs: {
      description: "Filtering, ordering, pagination and embedding",
      url: "https://docs.postgrest.org/en/v14/references/api.html",
    },
    servers: [{ url: serverUrl }],
    security: securityActive ? [{ apikey: [], JWT: [] }, { apikey: [] }] : undefined,
    paths: function* () {
      yield ["/", ROOT];
      yield* tablePaths(viewer, catalog);
      yield* routinePaths({ viewer, catalog, typeSchema });
    },
    components: {
      schemas: function* () {
        yield* Object.entries(components.schemas);
        for (const visible of viewer.tables) yield* rowSchemas(visible);
      },
      parameters: function* () {
        yield* sharedParameters(subject);
        for (const visible of viewer.tables) yield* rowFilters(visible);
      },
      responses: function* () {
        yield EMPTY_RESPONSE;
        yield* tableErrorResponses();
        for (const visible of viewer.tables) yield* tableResponses(visible, { viewer, catalog });
      },
      headers: components.headers,
      securitySchemes: securityActive ? components.securitySchemes : undefined,
    },
  };
}

const ROOT = {
  get: {
    operationId: "describe",
    tags: ["Introspection"],
    summary: "OpenAPI description (this document)",
    responses: {
      200: {
        description: "OpenAPI 3.1, or Swagger 2.0 for Accept headers of PostgREST clients",
        content: { "application/vnd.oai.openapi+json": {}, "application/openapi+json": {}, "application/json": {} },
      },
    },
  },
};
