import { readComment } from "./comment.ts";
import type { Subject } from "./subject.ts";
import { errorResponses } from "./table-document/error-responses.ts";
import { HEADERS } from "./table-document/headers.ts";
import { rowFilters, sharedParameters } from "./table-document/parameters.ts";
import { routinePaths } from "./table-document/routine-paths.ts";
import { makeRowSchemas, SHARED_SCHEMAS } from "./table-document/row-schemas.ts";
import { tablePaths } from "./table-document/table-paths.ts";
import { DONE, tableResponses } from "./table-document/table-responses.ts";
import { makeTypeSchemas } from "./table-document/type-schema.ts";
import { makeViewer } from "./viewer.ts";
import type { Document } from "./write.ts";

/** The table interface in OpenAPI 3.1. */
export async function tableDocument(subject: Subject): Promise<Document> {
  const { catalog, serverUrl, securityActive, version } = subject;
  const viewer = await makeViewer(subject);
  const typeSchema = makeTypeSchemas(catalog, viewer);
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
      description: "How to filter, order, page and embed",
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
        yield* SHARED_SCHEMAS;
        for (const visible of viewer.tables) yield* rowSchemas(visible);
      },
      parameters: function* () {
        yield* sharedParameters(subject);
        for (const visible of viewer.tables) yield* rowFilters(visible);
      },
      responses: function* () {
        yield DONE;
        yield* errorResponses();
        for (const visible of viewer.tables) yield* tableResponses(visible, { viewer, catalog });
      },
      headers: HEADERS,
      securitySchemes: securityActive ? SECURITY_SCHEMES : undefined,
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
        description: "OpenAPI 3.1, or Swagger 2.0 for those who ask as PostgREST's clients do",
        content: { "application/vnd.oai.openapi+json": {}, "application/openapi+json": {}, "application/json": {} },
      },
    },
  },
};

const SECURITY_SCHEMES = {
  apikey: { type: "apiKey", in: "header", name: "apikey", description: "A key of this deployment" },
  JWT: { type: "http", scheme: "bearer", bearerFormat: "JWT", description: "The token of a signed-in user" },
};
