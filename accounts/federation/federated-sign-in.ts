import { hash } from "node:crypto";
import type pg from "pg";
import { type AsOwner, inOwnerTransaction } from "#postgres/database";
import { ApiError } from "#runtime";
import { accountDisabled, wrongCodeAtLogin } from "../auth-errors.ts";
import { CLIENT_INFO_SQL, type ClientInfo, clientInfoParameter } from "../identity/client-info.ts";
import type { OpenSignIn, SignInProof } from "../login.ts";
import { type LoginAttempts, NO_PROOF } from "../login-attempts.ts";
import { decryptText, digestOf, encryptText, generateSecret } from "../random-secrets.ts";
import type { NewSession } from "../sessions.ts";
import type { LimitSignUps } from "../sign-up-limit.ts";
import type { SessionTokens, TokenPair } from "../token-pairs.ts";
import {
  accountConflict,
  asProviderError,
  assertionInvalid,
  auditFailures,
  emailMissing,
  identityTaken,
  signInEnded,
  signUpClosed,
  tooManyIdentities,
} from "./federation-errors.ts";
import type { OAuthStateStore, RequestedSignIn, SavedSignIn, SignInOptions } from "./oauth-state-store.ts";
import type { CallbackRequest, ExternalIdentity, Provider, ProviderProtocol, SignOutHint } from "./provider.ts";
import type { Providers } from "./providers.ts";
import type { ReadRedirectTarget } from "./read-redirect-target.ts";

export type FederationDependencies = {
  readonly asOwner: AsOwner;
  readonly limitSignUps: LimitSignUps;
  readonly providers: Providers;
  /** `mode` selects the redirect URI. */
  readonly protocolOf: (provider: Provider, mode?: SignInOptions["mode"]) => ProviderProtocol;
  readonly stateStore: OAuthStateStore;
  readonly readRedirectTarget: ReadRedirectTarget;
};

export type SignInDependencies = FederationDependencies & {
  readonly attempts: LoginAttempts;
  readonly openSession: OpenSignIn<NewSession>;
  readonly completeForClient: (callback: ClientCallback, clientInfo: ClientInfo) => Promise<ClientSignInResult>;
};

/** The result of a federated sign-in. */
export type SignInResult =
  | { readonly kind: "session"; readonly session: NewSession; readonly redirectTo: string | null }
  /** A code that the application at `redirectTo` exchanges for tokens. */
  | { readonly kind: "token"; readonly code: string; readonly redirectTo: string }
  | { readonly kind: "linked"; readonly redirectTo: string | null }
  | ClientSignInResult
  /** The account requires a code, and the provider's sign-in does not count as a second factor. */
  | { readonly kind: "code_required" };

/** The URL that the browser of a client of Supabase Auth is redirected to, and the result that the URL carries. */
export type ClientSignInResult = {
  readonly kind: "client";
  readonly redirectTo: string;
  /** True if a signed-in user links an identity. */
  readonly isLink: boolean;
  readonly result: { readonly code: string } | { readonly tokens: SessionTokens } | { readonly error: ApiError };
};

/** The callback of a provider, and the state that it belongs to. */
export type ClientCallback = {
  readonly provider: Provider;
  readonly callback: CallbackRequest;
  readonly state: string;
  readonly saved: SavedSignIn;
};

/** A sign-in whose user is verified. */
type VerifiedSignIn = {
  readonly provider: string;
  readonly userId: string;
  readonly options: SignInOptions;
  readonly signOut: SignOutHint;
};

const SIGN_IN_ERRORS = {
  gone: signInEnded,
  replayed: () => assertionInvalid(new Error("The assertion was accepted before")),
  conflict: accountConflict,
  closed: signUpClosed,
  nameless: emailMissing,
  taken: identityTaken,
  too_many: tooManyIdentities,
  ended: signInEnded,
  disabled: accountDisabled,
  code: wrongCodeAtLogin,
};
type ErrorOutcome = keyof typeof SIGN_IN_ERRORS;
type IdentityOutcome = "passed" | "linked" | "code_missing" | Exclude<ErrorOutcome, "code">;
type SecondFactorOutcome = "passed" | Extract<ErrorOutcome, "code" | "ended" | "disabled">;

/** The standards allow 256 characters; a Postgres index entry holds about 2,700 bytes including the issuer. */
const MAX_INDEXED_BYTES = 1_024;
/** The lifetime is short, because the application exchanges the code as soon as the browser delivers it. */
const CODE_LIFETIME_SECONDS = 60;
const PENDING_LIFETIME_SECONDS = 10 * 60;

/** This sign-in requires the code of an account with a second factor before it ends. */
const OAUTH_PROOF: SignInProof = { methods: ["oauth"], aal: 1, isComplete: true };

const PASS_FEDERATION = `select * from auth.pass_federation($2, $3, $4, $5, $6, ${CLIENT_INFO_SQL})`;
const KNOWS_IDENTITY = `
  select from auth.identities join auth.providers using (issuer)
  where providers.name = $1 and identities.subject = $2`;
const FIND_PENDING = `
  select login.* from auth.federation_logins as login join auth.providers on providers.name = login.provider
  where login.browser_hash = $1 and login.expires_at > pg_catalog.now() and providers.enabled`;
const PASS_SECOND_FACTOR = `select auth.pass_federated_factor($2, $3, $4, $5, $6, $7, ${CLIENT_INFO_SQL}) as outcome`;
const ADD_CODE = `select auth.add_federation_code($1, $2, $3, ${CODE_LIFETIME_SECONDS})`;
const USE_CODE = `select * from auth.use_federation_code($2, $3, ${CLIENT_INFO_SQL})`;

/** Starts a sign-in and returns the provider's URL for the browser. `isPosted`: the callback is a cross-site POST. */
export async function beginSignIn(
  { asOwner, providers, protocolOf, stateStore, readRedirectTarget }: FederationDependencies,
  name: string,
  requested: RequestedSignIn,
  browser: string,
  clientInfo: ClientInfo,
): Promise<{ url: string; isPosted: boolean }> {
  const provider = await providers.find(name);
  return auditFailures(asOwner, name, clientInfo, async () => {
    const redirectTo = readRedirectTarget(requested.redirectTo);
    if (requested.mode === "token" && redirectTo === null) throw redirectMissing(requested.redirectTo.field);
    const state = generateSecret();
    const { url, checks } = await asProviderError(() => protocolOf(provider).startSignIn(state));
    const owner = { provider: name, purpose: "sign-in", browser } as const;
    await stateStore.save(state, owner, { ...requested, redirectTo }, checks);
    return { url, isPosted: provider.kind === "saml" };
  });
}

/** Verifies the provider's callback. */
export async function finishSignIn(
  dependencies: SignInDependencies,
  name: string,
  callback: CallbackRequest,
  browser: string,
  clientInfo: ClientInfo,
): Promise<SignInResult> {
  const { asOwner, providers, protocolOf, stateStore } = dependencies;
  const provider = await providers.find(name);
  return auditFailures(asOwner, name, clientInfo, async () => {
    const protocol = protocolOf(provider);
    const state = protocol.stateOf(callback);
    const saved = await stateStore.take(state, { provider: name, purpose: "sign-in", browser });
    const { options, createdAt } = saved;
    if (options.mode === "code" || options.mode === "fragment") {
      return dependencies.completeForClient({ provider, callback, state, saved }, clientInfo);
    }
    const identity = await protocol.readIdentity(callback, state, saved.checks);
    const received = { provider: name, identity, linking: options.userId, startedAt: createdAt };
    return passIdentity(
      dependencies,
      received,
      clientInfo,
      async (client, { outcome, userId }): Promise<SignInResult> => {
        const verified = { provider: name, userId, options, signOut: identity.signOut };
        if (outcome === "passed") return completeSignIn(client, verified, clientInfo, dependencies.openSession);
        if (outcome === "linked") return { kind: "linked", redirectTo: options.redirectTo };
        await savePending(client, verified, browser);
        return { kind: "code_required" };
      },
    );
  });
}

export type ReceivedIdentity = {
  /** The name of the provider. */
  readonly provider: string;
  readonly identity: ExternalIdentity;
  /** The signed-in user who links the identity; null for a sign-in. */
  readonly linking: string | null;
  readonly startedAt: Date;
};
type PassedIdentity = {
  readonly outcome: "passed" | "linked" | "code_missing";
  readonly userId: string;
  /** The identity without characters that Postgres cannot store. */
  readonly identity: ExternalIdentity;
};

/** Finds the user of a verified identity, and completes the sign-in in the same transaction, which has locked the account. */
export async function passIdentity<T extends object>(
  { asOwner, limitSignUps }: Pick<FederationDependencies, "asOwner" | "limitSignUps">,
  received: ReceivedIdentity,
  clientInfo: ClientInfo,
  complete: (client: pg.ClientBase, passed: PassedIdentity) => Promise<T>,
): Promise<T> {
  // The first sign-in of an identity creates an account, or links it to one.
  const checked = withCheckedText(received);
  if (checked.linking === null && !(await knowsIdentity(asOwner, checked))) await limitSignUps(clientInfo.address);
  return unlessError(
    await inOwnerTransaction(asOwner, async (client): Promise<T | ErrorOutcome> => {
      const passed = await passChecked(client, checked, clientInfo);
      return typeof passed === "string" ? passed : complete(client, passed);
    }),
  );
}

/** Runs in the caller's transaction, which records that a message of the provider was used, even if the identity is refused. */
export async function passWithin(
  client: pg.ClientBase,
  received: ReceivedIdentity,
  clientInfo: ClientInfo,
): Promise<PassedIdentity | ErrorOutcome> {
  return passChecked(client, withCheckedText(received), clientInfo);
}

async function passChecked(
  client: pg.ClientBase,
  { provider, identity, linking, startedAt }: ReceivedIdentity,
  clientInfo: ClientInfo,
): Promise<PassedIdentity | ErrorOutcome> {
  const claims = JSON.stringify(toClaimsJson(identity));
  const values = [clientInfoParameter(clientInfo), provider, identity.subject, claims, linking, startedAt];
  const { rows } = await client.query<{ outcome: IdentityOutcome; user_id: string }>(PASS_FEDERATION, values);
  const { outcome, user_id: userId } = rows[0]!;
  const isPassed = outcome === "passed" || outcome === "linked" || outcome === "code_missing";
  return isPassed ? { outcome, userId, identity } : outcome;
}

async function knowsIdentity(asOwner: AsOwner, { provider, identity }: ReceivedIdentity): Promise<boolean> {
  const { rows } = await asOwner((client) => client.query(KNOWS_IDENTITY, [provider, identity.subject]));
  return rows.length > 0;
}

/** The code step after a federated sign-in, for accounts with an authenticator app. */
export async function finishWithCode(
  { asOwner, attempts, openSession }: SignInDependencies,
  code: string,
  browser: string,
  clientInfo: ClientInfo,
): Promise<SignInResult> {
  const verified = await auditFailures(asOwner, null, clientInfo, () => findPending(asOwner, browser));
  const attempt = await attempts.beginFor(verified.userId, clientInfo);
  const { countedName, hasFactor } = attempt;
  // The app may have been disabled since the sign-in started.
  const proof = !hasFactor ? NO_PROOF : await attempts.verifyCode(attempt, code);
  if (!proof) {
    await attempts.fail(attempt, "code");
    throw wrongCodeAtLogin();
  }
  const values = [
    clientInfoParameter(clientInfo),
    digestOf(browser),
    countedName,
    verified.userId,
    proof.factorSecret,
    proof.step,
    proof.backupCodeHash,
  ];
  return unlessError(
    await inOwnerTransaction(asOwner, async (client): Promise<SignInResult | ErrorOutcome> => {
      const { rows } = await client.query<{ outcome: SecondFactorOutcome }>(PASS_SECOND_FACTOR, values);
      const { outcome } = rows[0]!;
      return outcome === "passed" ? completeSignIn(client, verified, clientInfo, openSession) : outcome;
    }),
  );
}

/** Exchanges a one-time code for tokens; requires the PKCE verifier if the sign-in had a challenge. */
export async function exchangeCode(
  asOwner: AsOwner,
  openTokens: OpenSignIn<TokenPair>,
  code: string,
  verifier: string | null,
  clientInfo: ClientInfo,
): Promise<TokenPair> {
  const challenge = verifier === null ? null : hash("sha256", verifier, "base64url");
  return unlessError(
    await inOwnerTransaction(asOwner, async (client): Promise<TokenPair | ErrorOutcome> => {
      const values = [clientInfoParameter(clientInfo), digestOf(code), challenge];
      type Exchange = { outcome: "passed" | "wrong" | "disabled"; user_id: string };
      const { rows } = await client.query<Exchange>(USE_CODE, values);
      const { outcome, user_id: userId } = rows[0]!;
      if (outcome === "passed") return openTokens(client, userId, clientInfo, OAUTH_PROOF);
      return outcome === "wrong" ? "gone" : outcome;
    }),
  );
}

/** Transactions return errors instead of throwing them, so that Postgres commits the use of the message or code. */
export function unlessError<T extends object>(result: T | ErrorOutcome): T {
  if (typeof result === "string") throw SIGN_IN_ERRORS[result]();
  return result;
}

/** Creates the session or the code, in the transaction that verified the user. */
async function completeSignIn(
  client: pg.ClientBase,
  { provider, userId, options, signOut }: VerifiedSignIn,
  clientInfo: ClientInfo,
  openSession: OpenSignIn<NewSession>,
): Promise<SignInResult> {
  const { mode, redirectTo, codeChallenge } = options;
  if (mode === "token") {
    return { kind: "token", code: await issueCode(client, userId, codeChallenge), redirectTo: redirectTo! };
  }
  const session = await openSession(client, userId, clientInfo);
  await client.query("select auth.save_federation_session($1, $2, $3, $4, $5)", [
    digestOf(session.id),
    provider,
    signOut.subject,
    signOut.sessionIndex,
    encryptHint(signOut, session.id),
  ]);
  return { kind: "session", session, redirectTo };
}

/** A code is passed in the redirect URL instead of tokens, because it can be used only once and expires after a minute. */
export async function issueCode(client: pg.ClientBase, userId: string, challenge: string | null): Promise<string> {
  const code = generateSecret();
  await client.query(ADD_CODE, [digestOf(code), userId, challenge]);
  return code;
}

type PendingSignInRow = {
  readonly provider: string;
  readonly user_id: string;
  readonly mode: SignInOptions["mode"];
  readonly redirect_to: string | null;
  readonly code_challenge: string | null;
  readonly sign_out_hint: string;
};

async function savePending(
  client: pg.ClientBase,
  { provider, userId, options, signOut }: VerifiedSignIn,
  browser: string,
): Promise<void> {
  const row: PendingSignInRow = {
    provider,
    user_id: userId,
    mode: options.mode,
    redirect_to: options.redirectTo,
    code_challenge: options.codeChallenge,
    sign_out_hint: encryptHint(signOut, browser),
  };
  const values = [JSON.stringify(row), digestOf(browser)];
  await client.query(`select auth.save_federation_login($1, $2, ${PENDING_LIFETIME_SECONDS})`, values);
}

async function findPending(asOwner: AsOwner, browser: string): Promise<VerifiedSignIn> {
  const { rows } = await asOwner((client) => client.query<PendingSignInRow>(FIND_PENDING, [digestOf(browser)]));
  if (!rows[0]) throw signInEnded();
  const { provider, user_id: userId, mode, redirect_to: redirectTo, code_challenge: codeChallenge } = rows[0];
  const options = { mode, redirectTo, codeChallenge, userId: null };
  return { provider, userId, options, signOut: decryptHint(rows[0].sign_out_hint, browser) };
}

/** Encrypts with a secret that only the browser has, so that the database alone cannot be used to sign users out. */
export function encryptHint(hint: SignOutHint, secret: string): string {
  return encryptText(JSON.stringify(hint), secret).toString("base64");
}

export function decryptHint(sealed: string, secret: string): SignOutHint {
  return JSON.parse(decryptText(Buffer.from(sealed, "base64"), secret));
}

/**
 * Postgres cannot store NUL characters or lone surrogates. They are removed from the display name, which may have been
 * truncated within a character, but refused in the subject and the e-mail address.
 */
function checkIdentityText(identity: ExternalIdentity): ExternalIdentity {
  const { subject, signOut, message, email, name } = identity;
  const indexed = [subject, signOut.subject, message?.id ?? ""];
  const isWhole = (text: string) => text.isWellFormed() && !text.includes("\0");
  if (subject === "" || indexed.some((text) => Buffer.byteLength(text) > MAX_INDEXED_BYTES)) {
    throw assertionInvalid(new Error("Its subject is empty, or an identifier is too long"));
  }
  if (![...indexed, email ?? ""].every(isWhole)) {
    throw assertionInvalid(new Error("Its subject or e-mail address contains invalid characters"));
  }
  return { ...identity, name: name === null ? null : name.toWellFormed().replaceAll("\0", "") };
}

function withCheckedText(received: ReceivedIdentity): ReceivedIdentity {
  return { ...received, identity: checkIdentityText(received.identity) };
}

function toClaimsJson({ email, isEmailVerified, name, hasSecondFactor, message }: ExternalIdentity) {
  return {
    email,
    email_verified: isEmailVerified,
    name,
    second_factor: hasSecondFactor,
    ...(message && { message_id: message.id, message_expires_at: message.expiresAt }),
  };
}

function redirectMissing(field: string): ApiError {
  const message = "A redirect URL is required, to receive the code.";
  return new ApiError("invalid", "MISSING_FIELD", message, { details: [{ field, message }] });
}
