import type { Caller, CredentialReader } from "../caller/caller.ts";
import type { Sessions } from "./sessions.ts";

/** Reads the session that a browser shows. One that has ended is none: the browser shows it on, asked or not. */
export function readSessions(sessions: Pick<Sessions, "use">): CredentialReader {
  return async ({ session }) => {
    const living = session ? await sessions.use(session) : null;
    if (!living) return null;
    const { claims, expiresAt } = living;
    return Object.freeze<Caller>({
      kind: "session",
      role: claims.role,
      claims,
      claimsText: JSON.stringify(claims),
      expiresAt: expiresAt.getTime() / 1000,
    });
  };
}
