import type { Caller, CredentialReader } from "../caller/caller.ts";
import { SESSION_CLAIM } from "./account-states.ts";
import { digestOf } from "./secret.ts";
import type { Sessions } from "./sessions.ts";

/** Reads the session that a browser shows. One that has ended is none: the browser shows it on, asked or not. */
export function readSessions(sessions: Pick<Sessions, "use">): CredentialReader {
  return async ({ session }) => {
    const living = session ? await sessions.use(session) : null;
    if (!living) return null;
    const { claims: known, expiresAt } = living;
    const claims = { ...known, [SESSION_CLAIM]: digestOf(session!).toString("hex") };
    return Object.freeze<Caller>({
      kind: "session",
      role: claims.role,
      claims,
      claimsText: JSON.stringify(claims),
      expiresAt: expiresAt.getTime() / 1000,
    });
  };
}
