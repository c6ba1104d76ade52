import type { CredentialReader } from "../identity/authenticator.ts";
import { callerFromClaims } from "../identity/caller.ts";
import { parseClaims, serializeClaims } from "../identity/claims.ts";
import type { Accounts } from "./accounts.ts";
import { digestOf } from "./random-secrets.ts";
import type { Sessions } from "./sessions.ts";
import { SESSION_CLAIM } from "./validate-claims.ts";

/** Authenticates a session cookie. An ended session counts as none, because the browser keeps sending its cookie. */
export function makeSessionReader(sessions: Pick<Sessions, "use">): CredentialReader {
  return async ({ session }) => {
    const liveSession = session ? await sessions.use(session) : null;
    if (!liveSession) return null;
    const digest = digestOf(session!).toString("hex");
    const claimsText = serializeClaims({ ...parseClaims(liveSession.claimsText), [SESSION_CLAIM]: digest });
    return callerFromClaims({ kind: "session", claimsText, expiresAt: liveSession.expiresAt.getTime() / 1000 });
  };
}

/** Authenticates Basic credentials. Each request is a login attempt, throttled like any other. */
export function makePasswordReader({ login, readClaims }: Pick<Accounts, "login" | "readClaims">): CredentialReader {
  return async ({ login: credentials }) => {
    if (!credentials) return null;
    const { username, password, clientInfo } = credentials;
    const claimsText = await login({ username, password }, clientInfo, readClaims);
    return callerFromClaims({ kind: "known", claimsText, expiresAt: null });
  };
}
