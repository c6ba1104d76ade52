import { type AsOwner, inTransaction } from "../database/as-owner.ts";
import { LIFETIMES } from "./lifetimes.ts";
import type { Opening } from "./login.ts";
import { digestOf, newSecret } from "./secret.ts";
import { SENDER, type Sender, senderValue } from "./sender.ts";
import type { UserClaims } from "./token-mint.ts";

export type SessionUser = {
  readonly userId: string;
  readonly username: string;
  readonly claims: UserClaims;
};

export type OpenedSession = SessionUser & {
  /** For the cookie; the database has only its digest. */
  readonly id: string;
};

export type LivingSession = SessionUser & {
  /** The claims as Postgres writes them, digit for digit. */
  readonly claimsText: string;
  readonly signedInAt: Date;
  /** The end, however busy it is. */
  readonly expiresAt: Date;
};

export type Sessions = {
  /** A new id, in the place of the session that the user had. */
  readonly open: Opening<OpenedSession>;
  /** Whose session it is, which goes on for another half hour; null when it has ended. */
  use(id: string): Promise<LivingSession | null>;
  close(id: string, sender: Sender): Promise<void>;
};

type OpenedRow = { username: string; claims: UserClaims };
type LivingRow = OpenedRow & { user_id: string; claims_text: string; signed_in_at: Date; expires_at: Date };

/** What is none of our ids is nothing to ask about. */
const PLAUSIBLE = /^[\w-]{43}$/;
const OPEN = `select * from auth.open_session($2, $3, ${LIFETIMES.idleSession}, ${LIFETIMES.session}, ${SENDER})`;
const USE = "select *, claims::text as claims_text from auth.use_session($1, $2)";

export function makeSessions(asOwner: AsOwner): Sessions {
  return {
    async open(client, userId, sender) {
      const id = newSecret();
      const { rows } = await client.query<OpenedRow>(OPEN, [senderValue(sender), userId, digestOf(id)]);
      const { username, claims } = rows[0]!;
      return { id, userId, username, claims };
    },

    async use(id) {
      if (!PLAUSIBLE.test(id)) return null;
      const { rows } = await asOwner((client) => client.query<LivingRow>(USE, [digestOf(id), LIFETIMES.idleSession]));
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

    async close(id, sender) {
      if (!PLAUSIBLE.test(id)) return;
      await inTransaction(asOwner, (client) =>
        client.query(`select auth.close_session($2, ${SENDER})`, [senderValue(sender), digestOf(id)]),
      );
    },
  };
}
