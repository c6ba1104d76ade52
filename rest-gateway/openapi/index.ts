export { apiReferenceRoutes } from "./api-reference.ts";
export { readComment } from "./document/comments.ts";
export {
  type JsonSchema,
  makeSchemaOfType,
  objectOf,
  orNull,
  type SchemaOfType,
} from "./document/json-schema.ts";
export {
  DocumentCache,
  documentResponse,
  type OpenApiDocument,
  type PrintedDocument,
  printDocument,
  readDocument,
} from "./document/printed-document.ts";
export {
  type TableDocumentOptions,
  type VisibleSchema,
  type VisibleTable,
  viewSchema,
} from "./document/visible-schema.ts";
export { makeResourceDocument, OPENAPI_PATH, openApiRoutes } from "./resource/document.ts";
export { makeRowSchemas, RESERVED_NAMES } from "./table/components.ts";
export { makeTableDocument } from "./table/document.ts";
