export { memoize, memoizePerObject } from "./cache/memoize.ts";
export { type CacheHits, memoizeRecent, RecentMap } from "./cache/recent-map.ts";
export { commandLine, PACKAGE_NAME, packageProgram, setPackageProgram } from "./command-line.ts";
export { didYouMean, editDistance, findClosestName } from "./edit-distance.ts";
export {
  ApiError,
  type ApiErrorDetails,
  type ApiErrorOptions,
  CREDENTIALS_REQUIRED,
  type ErrorKind,
  ExplainedError,
  type FieldError,
  fieldErrorsOf,
  isExplained,
  unavailable,
} from "./errors.ts";
export { escapeHtml } from "./escape-html.ts";
export { hasHiddenCharacters, showHiddenCharacters } from "./hidden-characters.ts";
export { clientNetwork, clientRange, clientSite, normalizeAddress } from "./limits/ip-address.ts";
export { LoadShedder } from "./limits/load-shedding.ts";
export { ByteQuota, heapSize, Reservation, SharedBytes, type Shortage } from "./memory/byte-quota.ts";
export { collectGarbage } from "./memory/collect-garbage.ts";
export {
  type DeploymentSecrets,
  decryptBytes,
  encryptBytes,
  parseWebhookSecret,
  readOrMakeSecrets,
  readSecrets,
  signWebhook,
} from "./secrets.ts";
export { shortenText } from "./shorten-text.ts";
export {
  type Algorithm,
  algorithmsOf,
  isKeySetText,
  isValidSignature,
  isWeakKey,
  parseKeySet,
  parsePublicKeySet,
  signContent,
  type WebKey,
} from "./web-keys.ts";
