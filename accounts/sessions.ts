import { type AsOwner, inOwnerTransaction } from "#postgres/database";
import { CLIENT_INFO_SQL, type ClientInfo, clientInfoParameter } from "./identity/client-info.ts";
import { LIFETIMES } from "./identity/lifetimes.ts";
import type { OpenSignIn } from "./login.ts";
import { digestOf, generateSecret } from "./random-secrets.ts";
import type { UserClaims } from "./token-pairs.ts";

type SessionUser = {
  readonly userId: string;
  readonly username: string;
  readonly claims: UserClaims;
};

export type NewSession = SessionUser & {
  /** The value of the cookie; the database stores only its digest. */
  readonly id: string;
};

export type LiveSession = SessionUser & {
  /** The claims as text, so that numbers keep all digits. */
  readonly claimsText: string;
  readonly signedInAt: Date;
  /** The end of the session, even if it is in use. */
  readonly expiresAt: Date;
};

export type Sessions = {
  /** Creates a session with a new id, which replaces the user's previous session. */
  readonly open: OpenSignIn<NewSession>;
  /** Returns the session and extends it by its idle time; null if it has ended. */
  use(id: string): Promise<LiveSession | null>;
  close(id: string, clientInfo: ClientInfo): Promise<void>;
};

type NewSessionRow = { username: string; claims: UserClaims };
type SessionRow = NewSessionRow & { user_id: string; claims_text: string; signed_in_at: Date; expires_at: Date };

/** Other values cannot be session ids, so the database is not queried. */
const SESSION_ID_PATTERN = /^[\w-]{43}$/;
const OPEN_SESSION = `select * from auth.open_session($2, $3, ${LIFETIMES.idleSession}, ${LIFETIMES.session}, ${CLIENT_INFO_SQL})`;
const USE_SESSION = "select *, claims::pg_catalog.text as claims_text from auth.use_session($1, $2)";

export function makeSessions(asOwner: AsOwner): Sessions {
  return {
    async open(client, userId, clientInfo) {
      const id = generateSecret();
      const { rows } = await client.query<NewSessionRow>(OPEN_SESSION, [
        clientInfoParameter(clientInfo),
        userId,
        digestOf(id),
      ]);
      const { username, claims } = rows[0]!;
      return { id, userId, username, claims };
    },

    async use(id) {
      if (!SESSION_ID_PATTERN.test(id)) return null;
      const { rows } = await asOwner((client) =>
        client.query<SessionRow>(USE_SESSION, [digestOf(id), LIFETIMES.idleSession]),
      );
      const row = rows[0];
      if (!row) return null;
      const { username, claims, claims_text: claimsText } = row;
      return {
        userId: row.user_id,
        username,
        claims,
        claimsText,
        signedInAt: row.signed_in_at,
        expiresAt: row.expires_at,
      };
    },

    async close(id, clientInfo) {
      if (!SESSION_ID_PATTERN.test(id)) return;
      await inOwnerTransaction(asOwner, (client) =>
        client.query(`select auth.close_session($2, ${CLIENT_INFO_SQL})`, [
          clientInfoParameter(clientInfo),
          digestOf(id),
        ]),
      );
    },
  };
}
