import { type AsOwner, inTransaction } from "../../database/as-owner.ts";
import { digestOf } from "../secret.ts";
import type { Kept } from "./provider.ts";
import type { RequestedTarget } from "./redirect-targets.ts";
import { signInEnded } from "./refusals.ts";

/** What the browser wants to come back for. */
export type Wish = {
  readonly mode: "session" | "token";
  readonly redirectTo: string | null;
  /** Of the verifier that a program shows with the code which it is given. */
  readonly codeChallenge: string | null;
  /** Who is signed in already, and links an identity. */
  readonly userId: string | null;
};

/** The same as a request has it: where to come back to is not checked yet. */
export type RequestedSignIn = Omit<Wish, "redirectTo"> & { readonly redirectTo: RequestedTarget };

/** Which browser left for which provider. */
export type Departure = {
  readonly provider: string;
  readonly purpose: "sign-in" | "sign-out";
  readonly browser: string;
};

export type Departures = {
  remember(state: string, departure: Departure, wish: Wish, kept: Kept): Promise<void>;
  /** Once, and for the browser that left. */
  recall(state: string, departure: Departure): Promise<Recalled>;
};

type Recalled = { readonly wish: Wish; readonly leftAt: Date; readonly kept: Kept };

type Row = {
  readonly provider: string;
  readonly purpose: Departure["purpose"];
  readonly mode: Wish["mode"];
  readonly redirect_to: string | null;
  readonly code_challenge: string | null;
  readonly user_id: string | null;
  readonly nonce: string | null;
  readonly code_verifier: string | null;
  readonly request_id: string | null;
};

/** In seconds. Users register, and look for their authenticator app, while they are away. */
const AWAY = 15 * 60;

/** Browsers that are away at a provider, known to every gateway. */
export function makeDepartures(asOwner: AsOwner): Departures {
  return {
    async remember(state, { provider, purpose, browser }, wish, kept) {
      const row: Row = {
        provider,
        purpose,
        mode: wish.mode,
        redirect_to: wish.redirectTo,
        code_challenge: wish.codeChallenge,
        user_id: wish.userId,
        nonce: kept.nonce,
        code_verifier: kept.codeVerifier,
        request_id: kept.requestId,
      };
      const values = [digestOf(state), digestOf(browser), JSON.stringify(row)];
      await inTransaction(asOwner, (client) =>
        client.query(`select auth.begin_federation($1, $2, $3, ${AWAY})`, values),
      );
    },

    async recall(state, { provider, purpose, browser }) {
      const { rows } = await inTransaction(asOwner, (client) =>
        client.query<Row & { readonly expires_at: Date }>("select * from auth.end_federation($1, $2, $3, $4)", [
          digestOf(state),
          digestOf(browser),
          provider,
          purpose,
        ]),
      );
      if (!rows[0]) throw signInEnded();
      const { mode, redirect_to: redirectTo, code_challenge: codeChallenge, user_id: userId, ...row } = rows[0];
      return {
        wish: { mode, redirectTo, codeChallenge, userId },
        leftAt: new Date(row.expires_at.getTime() - AWAY * 1_000),
        kept: { nonce: row.nonce, codeVerifier: row.code_verifier, requestId: row.request_id },
      };
    },
  };
}
