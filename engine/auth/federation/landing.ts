import type pg from "pg";
import type { Opening } from "../login.ts";
import { seal, unseal } from "../sealed.ts";
import { digestOf } from "../secret.ts";
import type { Sender } from "../sender.ts";
import type { OpenedSession } from "../sessions.ts";
import { newCode } from "./code-exchange.ts";
import type { Wish } from "./departures.ts";
import type { SignOutHint } from "./provider.ts";

/** How a sign-in through a provider ends. */
export type Ending =
  | { readonly kind: "session"; readonly session: OpenedSession; readonly redirectTo: string | null }
  /** To be exchanged for tokens by whoever is at that address. */
  | { readonly kind: "token"; readonly code: string; readonly redirectTo: string }
  | { readonly kind: "linked"; readonly redirectTo: string | null }
  /** The account has an authenticator app, and the provider's word does not stand for it. */
  | { readonly kind: "code_required" };

/** Who has come back, and is let in. */
export type Landed = {
  readonly provider: string;
  readonly userId: string;
  readonly wish: Wish;
  readonly signOut: SignOutHint;
};

export type Land = (client: pg.ClientBase, landed: Landed, sender: Sender) => Promise<Ending>;

/** Opens what was wished for, in the transaction that found the user to be who they say. */
export function makeLand(openSession: Opening<OpenedSession>): Land {
  return async (client, { provider, userId, wish, signOut }, sender) => {
    const { mode, redirectTo, codeChallenge } = wish;
    if (mode === "token")
      return { kind: "token", code: await newCode(client, userId, codeChallenge), redirectTo: redirectTo! };
    const session = await openSession(client, userId, sender);
    await client.query("select auth.keep_federation_session($1, $2, $3, $4, $5)", [
      digestOf(session.id),
      provider,
      signOut.subject,
      signOut.sessionIndex,
      sealHint(signOut, session.id),
    ]);
    return { kind: "session", session, redirectTo };
  };
}

/** By what only the browser has, so that the database alone signs nobody out. */
export function sealHint(hint: SignOutHint, secret: string): string {
  return seal(JSON.stringify(hint), secret).toString("base64");
}

export function unsealHint(sealed: string, secret: string): SignOutHint {
  return JSON.parse(unseal(Buffer.from(sealed, "base64"), secret));
}
