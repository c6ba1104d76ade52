export {
  type Collection,
  type Collections,
  collectionsOf,
  displacedTables,
  isVisibleCollection,
  makeCollections,
  type RowAction,
  tableAddresses,
  warnOfDisplacedTables,
} from "./collections.ts";
export { validationError } from "./errors.ts";
export type { CollectionField } from "./fields.ts";
