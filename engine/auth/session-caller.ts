import type { CredentialReader } from "../caller/caller.ts";
import { parseClaims, spellClaims } from "../caller/claims.ts";
import { statedCaller } from "../caller/stated-caller.ts";
import { SESSION_CLAIM } from "./account-states.ts";
import { digestOf } from "./secret.ts";
import type { Sessions } from "./sessions.ts";

/** Reads the session that a browser shows. One that has ended is none: the browser shows it on, asked or not. */
export function readSessions(sessions: Pick<Sessions, "use">): CredentialReader {
  return async ({ session }) => {
    const living = session ? await sessions.use(session) : null;
    if (!living) return null;
    const digest = digestOf(session!).toString("hex");
    const claimsText = spellClaims({ ...parseClaims(living.claimsText), [SESSION_CLAIM]: digest });
    return statedCaller({ kind: "session", claimsText, expiresAt: living.expiresAt.getTime() / 1000 });
  };
}
