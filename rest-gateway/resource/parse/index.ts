export { BATCH_COLLECTION } from "./address.ts";
export {
  fieldNamed,
  filterNames,
  parseListParameters,
  parseRowParameters,
  RESERVED_PARAMETERS,
  windowOf,
} from "./parameters.ts";
export { isSearchable, SEARCH } from "./search.ts";
export {
  type ApiVersion,
  defaultVersion,
  makeVersionReader,
  negotiateVersion,
  type ReadVersions,
} from "./versions.ts";
