export { apiReferenceRoutes } from "./api-reference.ts";
export {
  DocumentCache,
  documentResponse,
  type OpenApiDocument,
  type PrintedDocument,
  printDocument,
} from "./printed-document.ts";
export { OPENAPI_PATH, openApiRoutes } from "./resource/document.ts";
export { makeTableDocument } from "./table/document.ts";
export type { TableDocumentOptions } from "./visible-schema.ts";
