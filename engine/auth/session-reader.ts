import type { CredentialReader } from "../caller/caller.ts";
import { parseClaims, spellClaims } from "../caller/claims.ts";
import { statedCaller } from "../caller/stated-caller.ts";
import { digestOf } from "./random-secret.ts";
import type { Sessions } from "./sessions.ts";
import { SESSION_CLAIM } from "./validate-claims.ts";

/** Authenticates a session cookie. An ended session counts as none, because the browser keeps sending its cookie. */
export function makeSessionReader(sessions: Pick<Sessions, "use">): CredentialReader {
  return async ({ session }) => {
    const living = session ? await sessions.use(session) : null;
    if (!living) return null;
    const digest = digestOf(session!).toString("hex");
    const claimsText = spellClaims({ ...parseClaims(living.claimsText), [SESSION_CLAIM]: digest });
    return statedCaller({ kind: "session", claimsText, expiresAt: living.expiresAt.getTime() / 1000 });
  };
}
