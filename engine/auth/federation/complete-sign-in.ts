import type pg from "pg";
import type { ClientInfo } from "../client-info.ts";
import { decryptText, encryptText } from "../encrypted-text.ts";
import type { OpenSignIn } from "../login.ts";
import { digestOf } from "../random-secret.ts";
import type { NewSession } from "../sessions.ts";
import { issueCode } from "./code-exchange.ts";
import type { SignInOptions } from "./oauth-state-store.ts";
import type { SignOutHint } from "./provider.ts";

/** The result of a federated sign-in. */
export type SignInResult =
  | { readonly kind: "session"; readonly session: NewSession; readonly redirectTo: string | null }
  /** A code that the application at `redirectTo` exchanges for tokens. */
  | { readonly kind: "token"; readonly code: string; readonly redirectTo: string }
  | { readonly kind: "linked"; readonly redirectTo: string | null }
  /** The account requires a code, and the provider's sign-in does not count as a second factor. */
  | { readonly kind: "code_required" };

/** A sign-in whose user is verified. */
export type VerifiedSignIn = {
  readonly provider: string;
  readonly userId: string;
  readonly options: SignInOptions;
  readonly signOut: SignOutHint;
};

export type CompleteSignIn = (
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
