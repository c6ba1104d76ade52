export type { AccountLinkRequest, AccountLinkType } from "./account-links.ts";
export { type Accounts, hasAccounts, makeAccounts, makePasswordReader, makeSessionReader } from "./accounts.ts";
export {
  type AccountChanges,
  Administration,
  createFirstAdministrator,
  type NewSecret,
  type NewUserAccount,
  type UserPageRequest,
} from "./administration.ts";
export { type IssuedToken, makeAdministratorTokens } from "./administrator-tokens.ts";
export { type AuditLogFilter, readAuditLog } from "./audit-log.ts";
export { secondFactorRequired, signInAgain } from "./auth-errors.ts";
export type { AuthSession } from "./auth-sessions.ts";
export { CLAIMS_HOOK_ROLE } from "./claims-hook.ts";
export type { CodeEmails, CodeRequest } from "./code-emails.ts";
export { type AccountEmails, EMAIL_LINK_PATHS, FORGOTTEN_PASSWORD_PATH } from "./email-links.ts";
export type { FactorEnrolment } from "./factors.ts";
export { type CodeChallenge, PKCE_PREFIX } from "./flow-states.ts";
export { readAccountRows } from "./import-accounts.ts";
export type { OAuthGrant, OAuthTokens } from "./oauth-tokens.ts";
export type { CodePurpose, CodeResult } from "./one-time-codes.ts";
export {
  type AccountSummary,
  awaitsConfirmation,
  type LinkedProvider,
  readUserJson,
  type SignIn,
  type SignOutScope,
  type UserJson,
} from "./own-account.ts";
export type { PasskeyChallenge } from "./passkeys.ts";
export { describePolicy, type PasswordPolicy } from "./password-policy.ts";
export { type HashParameters, makePasswords } from "./passwords.ts";
export type { PhoneAccounts } from "./phone-accounts.ts";
export { ensurePlaygroundUser } from "./playground-user.ts";
export { digestOf, generateSecret, isUuid } from "./random-secrets.ts";
export type { NewAccount, Registration } from "./registration.ts";
export type {
  FactorChallenge,
  FactorEnrolmentResult,
  FactorRefusal,
  FactorType,
  SecondFactor,
} from "./second-factors.ts";
export type { LiveSession, NewSession, Sessions } from "./sessions.ts";
export { type LimitCreatedUsers, type LimitSignUps, makeCreatedUsersLimit } from "./sign-up-limit.ts";
export { makeSigners, type Signers } from "./signers.ts";
export type { AccessClaims, SessionClaims, TokenPair } from "./token-pairs.ts";
export type { UpdateOutcome } from "./update-user.ts";
export { readUserId, userIdOf } from "./user-id.ts";
export { makeValidateClaims, SESSION_CLAIM, signInOf } from "./validate-claims.ts";
export type { Passkey } from "./webauthn.ts";
