import { type AsOwner, inOwnerTransaction } from "#postgres/database";
import { digestOf } from "../random-secrets.ts";
import { signInEnded } from "./federation-errors.ts";
import type { FlowChecks } from "./provider.ts";
import type { RequestedRedirect } from "./read-redirect-target.ts";

/** The options that the client requested when it started the sign-in. */
export type SignInOptions = {
  /** `code` and `fragment` are for clients of Supabase Auth, with PKCE or without. */
  readonly mode: "session" | "token" | "code" | "fragment";
  readonly redirectTo: string | null;
  /** The PKCE challenge of the application. */
  readonly codeChallenge: string | null;
  /** The signed-in user who links an identity; null for a sign-in. */
  readonly userId: string | null;
};

/** Sign-in options as requested, with a redirect that is not validated yet. */
export type RequestedSignIn = Omit<SignInOptions, "redirectTo"> & { readonly redirectTo: RequestedRedirect };

/** The browser and the provider that a state belongs to. */
type OAuthStateOwner = {
  readonly provider: string;
  readonly purpose: "sign-in" | "sign-out";
  readonly browser: string;
};

export type OAuthStateStore = {
  save(state: string, owner: OAuthStateOwner, options: SignInOptions, checks: FlowChecks): Promise<void>;
  /** Returns and deletes a state; throws unless it belongs to this browser and provider. */
  take(state: string, owner: OAuthStateOwner): Promise<SavedSignIn>;
  /** Returns the provider of a client's pending sign-in; null if the state is unknown. */
  providerOf(state: string): Promise<string | null>;
};

export type SavedSignIn = { readonly options: SignInOptions; readonly createdAt: Date; readonly checks: FlowChecks };

type OAuthStateRow = {
  readonly provider: string;
  readonly purpose: OAuthStateOwner["purpose"];
  readonly mode: SignInOptions["mode"];
  readonly redirect_to: string | null;
  readonly code_challenge: string | null;
  readonly user_id: string | null;
  readonly nonce: string | null;
  readonly code_verifier: string | null;
  readonly request_id: string | null;
};

/** The lifetime allows users to register, or to fetch their authenticator app, at the provider. */
const STATE_LIFETIME_SECONDS = 15 * 60;

const FIND_PROVIDER = `
  select provider from auth.federation_states
  where state_hash = $1 and purpose = 'sign-in' and mode in ('code', 'fragment') and expires_at > pg_catalog.now()`;

/** Stores the state of sign-ins that wait for the provider's callback, in Postgres for all gateways. */
export function makeOAuthStateStore(asOwner: AsOwner): OAuthStateStore {
  return {
    async save(state, { provider, purpose, browser }, options, checks) {
      const row: OAuthStateRow = {
        provider,
        purpose,
        mode: options.mode,
        redirect_to: options.redirectTo,
        code_challenge: options.codeChallenge,
        user_id: options.userId,
        nonce: checks.nonce,
        code_verifier: checks.codeVerifier,
        request_id: checks.requestId,
      };
      const values = [digestOf(state), digestOf(browser), JSON.stringify(row)];
      await inOwnerTransaction(asOwner, (client) =>
        client.query(`select auth.begin_federation($1, $2, $3, ${STATE_LIFETIME_SECONDS})`, values),
      );
    },

    async take(state, { provider, purpose, browser }) {
      const { rows } = await inOwnerTransaction(asOwner, (client) =>
        client.query<OAuthStateRow & { readonly expires_at: Date }>(
          "select * from auth.end_federation($1, $2, $3, $4)",
          [digestOf(state), digestOf(browser), provider, purpose],
        ),
      );
      if (!rows[0]) throw signInEnded();
      const { mode, redirect_to: redirectTo, code_challenge: codeChallenge, user_id: userId, ...row } = rows[0];
      return {
        options: { mode, redirectTo, codeChallenge, userId },
        createdAt: new Date(row.expires_at.getTime() - STATE_LIFETIME_SECONDS * 1_000),
        checks: { nonce: row.nonce, codeVerifier: row.code_verifier, requestId: row.request_id },
      };
    },
    async providerOf(state) {
      const { rows } = await asOwner((client) => client.query<{ provider: string }>(FIND_PROVIDER, [digestOf(state)]));
      return rows[0]?.provider ?? null;
    },
  };
}
