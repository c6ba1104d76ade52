import { type AsOwner, inTransaction } from "../../database/as-owner.ts";
import { ApiError } from "../../errors.ts";
import { accountDisabled } from "../auth-errors.ts";
import { CLIENT_INFO_SQL, type ClientInfo, clientInfoParameter } from "../client-info.ts";
import { generateSecret } from "../random-secret.ts";
import type { AuditRefusals } from "./audit-refusals.ts";
import type { CompleteSignIn, SignInResult } from "./complete-sign-in.ts";
import {
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
import type { CallbackRequest, ExternalIdentity, Provider } from "./provider.ts";
import type { Providers } from "./providers.ts";
import type { ReadRedirectTarget } from "./read-redirect-target.ts";
import type { SecondFactorStep } from "./second-factor.ts";

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

type Options = {
  readonly asOwner: AsOwner;
  readonly providers: Providers;
  readonly protocols: ProviderProtocols;
  readonly stateStore: OAuthStateStore;
  readonly auditRefusals: AuditRefusals;
  readonly completeSignIn: CompleteSignIn;
  readonly secondFactorStep: Pick<SecondFactorStep, "savePending">;
  readonly readRedirectTarget: ReadRedirectTarget;
};

const ERRORS = {
  gone: signInEnded,
  replayed: () => assertionInvalid(new Error("The assertion was accepted before")),
  conflict: accountConflict,
  closed: signUpClosed,
  nameless: emailMissing,
  taken: identityTaken,
  ended: signInEnded,
  disabled: accountDisabled,
};
type ErrorOutcome = keyof typeof ERRORS;
type SignInOutcome = "passed" | "linked" | "code_missing" | ErrorOutcome;

/** The standards allow 256 characters; a Postgres index entry holds about 2,700 bytes including the issuer. */
const MAX_INDEXED_BYTES = 1_024;
const PASS = `select * from auth.pass_federation($2, $3, $4, $5, $6, ${CLIENT_INFO_SQL})`;

export function makeFederatedSignIn(options: Options): FederatedSignIn {
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
  ): Promise<SignInResult | ErrorOutcome> => {
    const values = [
      clientInfoParameter(clientInfo),
      provider,
      subject,
      JSON.stringify(toClaims(identity)),
      signInOptions.userId,
      createdAt,
    ];
    return inTransaction(asOwner, async (client) => {
      const { rows } = await client.query<{ outcome: SignInOutcome; user_id: string }>(PASS, values);
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
        if (typeof result === "string") throw ERRORS[result]();
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

function toClaims({
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
