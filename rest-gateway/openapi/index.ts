export { apiReferenceRoutes } from "./api-reference.ts";
export {
  DocumentCache,
  documentResponse,
  type OpenApiDocument,
  type PrintedDocument,
  printDocument,
  readDocument,
} from "./document/printed-document.ts";
export { makeResourceDocument, OPENAPI_PATH, openApiRoutes } from "./resource/document.ts";
export { makeTableDocument } from "./table/document.ts";
