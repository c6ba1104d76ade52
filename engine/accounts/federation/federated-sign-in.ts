import { hash } from "node:crypto";
import type pg from "pg";
import { type AsOwner, inOwnerTransaction } from "../../database/owner-pool.ts";
import { ApiError } from "../../errors.ts";
import { CLIENT_INFO_SQL, type ClientInfo, clientInfoParameter } from "../../identity/client-info.ts";
import { accountDisabled, wrongCodeAtLogin } from "../auth-errors.ts";
import type { OpenSignIn } from "../login.ts";
import type { FactorProof, LoginAttempts } from "../login-attempts.ts";
import { decryptText, digestOf, encryptText, generateSecret } from "../random-secrets.ts";
import type { NewSession } from "../sessions.ts";
import type { TokenPair, TokenPairs } from "../token-pairs.ts";
import {
  type AuditFailures,
  accountConflict,
  asProviderError,
  assertionInvalid,
  emailMissing,
  identityTaken,
  signInEnded,
  signUpClosed,
} from "./federation-errors.ts";
import type { OAuthStateStore, RequestedSignIn, SignInOptions } from "./oauth-state-store.ts";
import type { ProviderProtocols } from "./protocols.ts";
import type { CallbackRequest, ExternalIdentity, Provider, SignOutHint } from "./provider.ts";
import type { Providers } from "./providers.ts";
import type { ReadRedirectTarget } from "./read-redirect-target.ts";

/** Short, because the application exchanges the code as soon as the browser delivers it. */
const CODE_LIFETIME_SECONDS = 60;
const ADD_CODE = `select auth.add_federation_code($1, $2, $3, ${CODE_LIFETIME_SECONDS})`;
const USE_CODE = `select * from auth.use_federation_code($2, $3, ${CLIENT_INFO_SQL})`;

const SECOND_FACTOR_ERRORS = { code: wrongCodeAtLogin, ended: signInEnded, disabled: accountDisabled };

const NO_PROOF: FactorProof = { step: null, backupCodeHash: null };
/** In seconds. */
const PENDING_LIFETIME_SECONDS = 10 * 60;
const FIND_PENDING = `
  select login.* from auth.federation_logins as login join auth.providers on providers.name = login.provider
  where login.browser_hash = $1 and login.expires_at > now() and providers.enabled`;
const PASS_SECOND_FACTOR = `select auth.pass_federated_factor($2, $3, $4, $5, $6, $7, ${CLIENT_INFO_SQL}) as outcome`;

export type FederatedSignIn = {
  /** Starts a sign-in and returns the provider's URL for the browser. `isPosted`: the callback is a cross-site POST. */
  begin(
    name: string,
    requested: RequestedSignIn,
    browser: string,
    clientInfo: ClientInfo,
  ): Promise<{ url: string; isPosted: boolean }>;
  /** Verifies the provider's callback. */
  finish(name: string, callback: CallbackRequest, browser: string, clientInfo: ClientInfo): Promise<SignInResult>;
};

type FederatedSignInOptions = {
  readonly asOwner: AsOwner;
  readonly providers: Providers;
  readonly protocols: ProviderProtocols;
  readonly stateStore: OAuthStateStore;
  readonly auditRefusals: AuditFailures;
  readonly completeSignIn: CompleteSignIn;
  readonly secondFactorStep: Pick<SecondFactorStep, "savePending">;
  readonly readRedirectTarget: ReadRedirectTarget;
};

const SIGN_IN_ERRORS = {
  gone: signInEnded,
  replayed: () => assertionInvalid(new Error("The assertion was accepted before")),
  conflict: accountConflict,
  closed: signUpClosed,
  nameless: emailMissing,
  taken: identityTaken,
  ended: signInEnded,
  disabled: accountDisabled,
};
type SignInErrorOutcome = keyof typeof SIGN_IN_ERRORS;
type SignInOutcome = "passed" | "linked" | "code_missing" | SignInErrorOutcome;

/** The standards allow 256 characters; a Postgres index entry holds about 2,700 bytes including the issuer. */
const MAX_INDEXED_BYTES = 1_024;
const PASS_FEDERATION = `select * from auth.pass_federation($2, $3, $4, $5, $6, ${CLIENT_INFO_SQL})`;

export function makeFederatedSignIn(options: FederatedSignInOptions): FederatedSignIn {
  const {
    asOwner,
    providers,
    protocols,
    stateStore,
    auditRefusals,
    completeSignIn,
    secondFactorStep,
    readRedirectTarget,
  } = options;

  /** Returns refusals instead of throwing, so that the transaction commits that the message was used. */
  const resolveIdentity = async (
    { name: provider }: Provider,
    { createdAt, ...signInOptions }: SignInOptions & { readonly createdAt: Date },
    { subject, signOut, ...identity }: ExternalIdentity,
    browser: string,
    clientInfo: ClientInfo,
  ): Promise<SignInResult | SignInErrorOutcome> => {
    const values = [
      clientInfoParameter(clientInfo),
      provider,
      subject,
      JSON.stringify(toClaimsJson(identity)),
      signInOptions.userId,
      createdAt,
    ];
    return inOwnerTransaction(asOwner, async (client) => {
      const { rows } = await client.query<{ outcome: SignInOutcome; user_id: string }>(PASS_FEDERATION, values);
      const { outcome, user_id: userId } = rows[0]!;
      const verified = { provider, userId, options: signInOptions, signOut };
      switch (outcome) {
        case "passed":
          return completeSignIn(client, verified, clientInfo);
        case "linked":
          return { kind: "linked", redirectTo: signInOptions.redirectTo };
        case "code_missing":
          await secondFactorStep.savePending(client, verified, browser);
          return { kind: "code_required" };
        default:
          return outcome;
      }
    });
  };

  return {
    async begin(name, requested, browser, clientInfo) {
      const provider = await providers.find(name);
      return auditRefusals(name, clientInfo, async () => {
        const redirectTo = readRedirectTarget(requested.redirectTo);
        if (requested.mode === "token" && redirectTo === null) throw redirectMissing(requested.redirectTo.field);
        const state = generateSecret();
        const { url, checks } = await asProviderError(() => protocols.of(provider).startSignIn(state));
        await stateStore.save(
          state,
          { provider: name, purpose: "sign-in", browser },
          { ...requested, redirectTo },
          checks,
        );
        return { url, isPosted: provider.kind === "saml" };
      });
    },

    async finish(name, callback, browser, clientInfo) {
      const provider = await providers.find(name);
      return auditRefusals(name, clientInfo, async () => {
        const protocol = protocols.of(provider);
        const state = protocol.stateOf(callback);
        const {
          options: signInOptions,
          createdAt,
          checks,
        } = await stateStore.take(state, { provider: name, purpose: "sign-in", browser });
        const identity = checkIdentityText(await protocol.readIdentity(callback, state, checks));
        const result = await resolveIdentity(provider, { ...signInOptions, createdAt }, identity, browser, clientInfo);
        if (typeof result === "string") throw SIGN_IN_ERRORS[result]();
        return result;
      });
    },
  };
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

function toClaimsJson({
  email,
  isEmailVerified,
  name,
  hasSecondFactor,
  message,
}: Omit<ExternalIdentity, "subject" | "signOut">) {
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
  return new ApiError(400, "MISSING_FIELD", message, { details: [{ field, message }] });
}

/** The result of a federated sign-in. */
export type SignInResult =
  | { readonly kind: "session"; readonly session: NewSession; readonly redirectTo: string | null }
  /** A code that the application at `redirectTo` exchanges for tokens. */
  | { readonly kind: "token"; readonly code: string; readonly redirectTo: string }
  | { readonly kind: "linked"; readonly redirectTo: string | null }
  /** The account requires a code, and the provider's sign-in does not count as a second factor. */
  | { readonly kind: "code_required" };

/** A sign-in whose user is verified. */
type VerifiedSignIn = {
  readonly provider: string;
  readonly userId: string;
  readonly options: SignInOptions;
  readonly signOut: SignOutHint;
};

type CompleteSignIn = (
  client: pg.ClientBase,
  verified: VerifiedSignIn,
  clientInfo: ClientInfo,
) => Promise<SignInResult>;

/** Creates the session or the code, in the transaction that verified the user. */
export function makeCompleteSignIn(openSession: OpenSignIn<NewSession>): CompleteSignIn {
  return async (client, { provider, userId, options, signOut }, clientInfo) => {
    const { mode, redirectTo, codeChallenge } = options;
    if (mode === "token")
      return { kind: "token", code: await issueCode(client, userId, codeChallenge), redirectTo: redirectTo! };
    const session = await openSession(client, userId, clientInfo);
    await client.query("select auth.keep_federation_session($1, $2, $3, $4, $5)", [
      digestOf(session.id),
      provider,
      signOut.subject,
      signOut.sessionIndex,
      encryptHint(signOut, session.id),
    ]);
    return { kind: "session", session, redirectTo };
  };
}

/** Encrypts with a secret that only the browser has, so that the database alone cannot be used to sign users out. */
export function encryptHint(hint: SignOutHint, secret: string): string {
  return encryptText(JSON.stringify(hint), secret).toString("base64");
}

export function decryptHint(sealed: string, secret: string): SignOutHint {
  return JSON.parse(decryptText(Buffer.from(sealed, "base64"), secret));
}

/** Exchanges a one-time code for tokens; requires the PKCE verifier if the sign-in had a challenge. */
export type ExchangeCode = (code: string, verifier: string | null, clientInfo: ClientInfo) => Promise<TokenPair>;

type ExchangeOutcome = "passed" | "wrong" | "disabled";

/** A code is passed in the redirect URL instead of tokens, because it can be used only once and expires after a minute. */
export async function issueCode(client: pg.ClientBase, userId: string, challenge: string | null): Promise<string> {
  const code = generateSecret();
  await client.query(ADD_CODE, [digestOf(code), userId, challenge]);
  return code;
}

export function makeExchangeCode(asOwner: AsOwner, tokens: Pick<TokenPairs, "open">): ExchangeCode {
  return async (code, verifier, clientInfo) => {
    const challenge = verifier === null ? null : hash("sha256", verifier, "base64url");
    const result = await inOwnerTransaction(
      asOwner,
      async (client): Promise<TokenPair | Exclude<ExchangeOutcome, "passed">> => {
        const values = [clientInfoParameter(clientInfo), digestOf(code), challenge];
        const { rows } = await client.query<{ outcome: ExchangeOutcome; user_id: string }>(USE_CODE, values);
        const { outcome, user_id: userId } = rows[0]!;
        return outcome === "passed" ? tokens.open(client, userId, clientInfo) : outcome;
      },
    );
    if (result === "disabled") throw accountDisabled();
    if (result === "wrong") throw signInEnded();
    return result;
  };
}

/** The code step after a federated sign-in, for accounts with an authenticator app. */
export type SecondFactorStep = {
  savePending(client: pg.ClientBase, verified: VerifiedSignIn, browser: string): Promise<void>;
  finish(code: string, browser: string, clientInfo: ClientInfo): Promise<SignInResult>;
};

type PendingSignInRow = {
  readonly provider: string;
  readonly user_id: string;
  readonly mode: SignInOptions["mode"];
  readonly redirect_to: string | null;
  readonly code_challenge: string | null;
  readonly sign_out_hint: string;
};
type SecondFactorOptions = {
  readonly asOwner: AsOwner;
  readonly attempts: LoginAttempts;
  readonly completeSignIn: CompleteSignIn;
  readonly auditRefusals: AuditFailures;
};
type SecondFactorOutcome = "passed" | keyof typeof SECOND_FACTOR_ERRORS;

export function makeSecondFactorStep({
  asOwner,
  attempts,
  completeSignIn,
  auditRefusals,
}: SecondFactorOptions): SecondFactorStep {
  const find = async (browser: string): Promise<VerifiedSignIn> => {
    const { rows } = await asOwner((client) => client.query<PendingSignInRow>(FIND_PENDING, [digestOf(browser)]));
    if (!rows[0]) throw signInEnded();
    const { provider, user_id: userId, mode, redirect_to: redirectTo, code_challenge: codeChallenge } = rows[0];
    const options = { mode, redirectTo, codeChallenge, userId: null };
    return { provider, userId, options, signOut: decryptHint(rows[0].sign_out_hint, browser) };
  };

  return {
    async savePending(client, { provider, userId, options, signOut }, browser) {
      const row: PendingSignInRow = {
        provider,
        user_id: userId,
        mode: options.mode,
        redirect_to: options.redirectTo,
        code_challenge: options.codeChallenge,
        sign_out_hint: encryptHint(signOut, browser),
      };
      const values = [JSON.stringify(row), digestOf(browser)];
      await client.query(`select auth.hold_federation($1, $2, ${PENDING_LIFETIME_SECONDS})`, values);
    },

    async finish(code, browser, clientInfo) {
      const verified = await auditRefusals(null, clientInfo, () => find(browser));
      const attempt = await attempts.beginFor(verified.userId, clientInfo);
      const { countedName, factorSecret } = attempt;
      // The app may have been disabled since the sign-in started.
      const proof = factorSecret === null ? NO_PROOF : await attempts.verifyCode(attempt, code);
      if (!proof) {
        await attempts.fail(attempt, "code");
        throw wrongCodeAtLogin();
      }
      const { step, backupCodeHash } = proof;
      const values = [
        clientInfoParameter(clientInfo),
        digestOf(browser),
        countedName,
        verified.userId,
        factorSecret,
        step,
        backupCodeHash,
      ];
      const result = await inOwnerTransaction(
        asOwner,
        async (client): Promise<SignInResult | Exclude<SecondFactorOutcome, "passed">> => {
          const { rows } = await client.query<{ outcome: SecondFactorOutcome }>(PASS_SECOND_FACTOR, values);
          const { outcome } = rows[0]!;
          return outcome === "passed" ? completeSignIn(client, verified, clientInfo) : outcome;
        },
      );
      if (typeof result === "string") throw SECOND_FACTOR_ERRORS[result]();
      return result;
    },
  };
}
