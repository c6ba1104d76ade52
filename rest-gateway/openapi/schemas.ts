export { readComment } from "./document/comments.ts";
export {
  type JsonSchema,
  makeSchemaOfType,
  objectOf,
  orNull,
  type SchemaOfType,
} from "./document/json-schema.ts";
export {
  includesAll,
  type TableDocumentOptions,
  type VisibleSchema,
  type VisibleTable,
  viewSchema,
} from "./document/visible-schema.ts";
export { makeRowSchemas, RESERVED_NAMES } from "./table/components.ts";
