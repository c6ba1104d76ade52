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

type Row = { user_id: string; username: string; claims: UserClaims; signed_in_at: Date; expires_at: Date };

/** What is none of our ids is nothing to ask about. */
const PLAUSIBLE = /^[\w-]{43}$/;
const OPEN = `select * from auth.open_session($2, $3, ${LIFETIMES.idleSession}, ${LIFETIMES.session}, ${SENDER})`;

export function makeSessions(asOwner: AsOwner): Sessions {
  return {
    async open(client, userId, sender) {
      const id = newSecret();
      const { rows } = await client.query<Row>(OPEN, [senderValue(sender), userId, digestOf(id)]);
      const { username, claims } = rows[0]!;
      return { id, userId, username, claims };
    },

    async use(id) {
      if (!PLAUSIBLE.test(id)) return null;
      const { rows } = await asOwner((client) =>
        client.query<Row>("select * from auth.use_session($1, $2)", [digestOf(id), LIFETIMES.idleSession]),
      );
      const row = rows[0];
      if (!row) return null;
      const { user_id: userId, username, claims, signed_in_at: signedInAt, expires_at: expiresAt } = row;
      return { userId, username, claims, signedInAt, expiresAt };
    },

    async close(id, sender) {
      if (!PLAUSIBLE.test(id)) return;
      await inTransaction(asOwner, (client) =>
        client.query(`select auth.close_session($2, ${SENDER})`, [senderValue(sender), digestOf(id)]),
      );
    },
  };
}
