export { makeFindApiKey } from "./api-key-lookup.ts";
export {
  type AuthenticationResult,
  type Authenticator,
  type Credentials,
  makeAuthenticator,
  type PasswordCredentials,
  type ValidateClaims,
} from "./authenticator.ts";
export {
  ADMIN_ROLE,
  type Caller,
  callerFromClaims,
  callerKey,
  isActedAs,
  isAdministrator,
  quotaKey,
} from "./caller.ts";
export {
  INTERFACE_NAMES,
  type InterfaceName,
  makeCallerSettings,
  makeMissingRoleWarning,
  makeSearchPathSetting,
  NO_REQUEST,
  type RequestInfo,
  roleSettings,
} from "./caller-settings.ts";
export { type Claims, hasExpired, millisecondsValid, parseClaims, serializeClaims } from "./claims.ts";
export { CLIENT_INFO_SQL, type ClientInfo, clientInfoParameter, OPERATOR } from "./client-info.ts";
export { CredentialError, type CredentialErrorReason } from "./credential-error.ts";
export { makeDatabaseClock } from "./database-clock.ts";
export { LIFETIMES } from "./lifetimes.ts";
export {
  ANY_RESOURCE,
  API_RESOURCE,
  isReadOnlyAccess,
  MCP_RESOURCE,
  readOAuthAccess,
  requireWriteAccess,
  resourceAddress,
} from "./oauth-access.ts";
export { makeProjectKeyReader, makeProjectKeys, SERVICE_ROLE } from "./project-keys.ts";
export { RemoteKeySet } from "./remote-key-set.ts";
export {
  canIssueTokens,
  type IssuingKeys,
  loadDeploymentKeys,
  makeTokenKeys,
  requireIssuingKeys,
  type TokenKeys,
  toPublicKeySet,
  toVerifyingKeySet,
} from "./token-keys.ts";
export { makeRoleKey, signToken, TokenError, verifySignature } from "./tokens.ts";
