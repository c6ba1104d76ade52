export { apiReferenceRoutes } from "./api-reference.ts";
export { OPENAPI_PATH, openApiRoutes } from "./resource/document.ts";
export { makeTableDocument } from "./table/document.ts";
export type { TableDocumentOptions } from "./visible-schema.ts";
export {
  DocumentCache,
  documentResponse,
  type OpenApiDocument,
  type WrittenDocument,
  writeDocument,
} from "./written-document.ts";
