export {
  API_FUNCTIONS,
  hasMovedApiNames,
  makeRoomForApiSchema,
  makesApiSchema,
  moveApiNames,
  moveApiObjects,
  placeApiNames,
  queryApiSchema,
} from "./api-schema.ts";
export { hintOf } from "./error-hints.ts";
export { type Listener, openListener } from "./listen.ts";
export { isLockTimeout } from "./lock-timeout.ts";
export { LISTS_OF_NAMES, quotedName } from "./quoted-name.ts";
export { SAFE_SEARCH_PATH } from "./search-path.ts";
export { findServer, isTimeout, NoServerError, type ServerOptions, UnsuitableServerError } from "./server-finder.ts";
export * as serverMessages from "./server-messages.ts";
export {
  isFatal,
  nameOfType,
  protocolViolation,
  type ResultField,
  readError,
  readFields,
  readRow,
} from "./server-messages.ts";
export {
  applyCallerSettings,
  makeCallerStatements,
  type Setting,
} from "./setting-statements.ts";
export { requireSupportedServer, requireTransactions } from "./supported-server.ts";
export { withClient, withServiceClient } from "./with-client.ts";
