export { validationError } from "./collections/errors.ts";
export type { CollectionField } from "./collections/fields.ts";
export { makeResourceInterface } from "./dialect.ts";
export { makeReadIntent, makeResourcePlanner, parentConditions, rowConditions } from "./intents.ts";
export { findTarget, parseAddress, type ResourceTarget } from "./parse/address.ts";
export { selectEveryField } from "./parse/fields.ts";
export {
  fieldNamed,
  filterNames,
  parseListParameters,
  parseRowParameters,
  RESERVED_PARAMETERS,
  windowOf,
} from "./parse/parameters.ts";
export { isSearchable, SEARCH } from "./parse/search.ts";
export {
  type ApiVersion,
  defaultVersion,
  makeVersionReader,
  negotiateVersion,
  type ReadVersions,
} from "./parse/versions.ts";
export { BATCH_COLLECTION } from "./resource-batch.ts";
