import { type AsOwner, inTransaction } from "../database/as-owner.ts";
import { ApiError } from "../errors.ts";
import { LIFETIMES } from "./lifetimes.ts";
import { checkNewPassword, type PasswordPolicy } from "./password-policy.ts";
import type { Passwords } from "./passwords.ts";
import { digestOf, newSecret } from "./secret.ts";
import { SENDER, type Sender, senderValue } from "./sender.ts";

/** What is to be sent: the token belongs into a link, and nowhere else. */
export type Mail = { readonly to: string; readonly token: string };

/** What is done by showing that one reads the mail of an address. */
export type MailLinks = {
  /**
   * Null: there is nobody to send it to, or it was sent within the last minute. Nobody who asks may learn which, by the
   * time that it takes neither: they are to be answered before.
   */
  requestReset(email: string, sender: Sender): Promise<Mail | null>;
  /** Sets the password and ends whatever the user is signed in by. */
  resetPassword(token: string, newPassword: string, sender: Sender): Promise<void>;
  /** Null: the address is verified, or a mail was sent within the last minute. */
  requestVerification(userId: string, sender: Sender): Promise<Mail | null>;
  verifyEmail(token: string, sender: Sender): Promise<void>;
};

type Options = { readonly asOwner: AsOwner; readonly passwords: Passwords; readonly policy: PasswordPolicy };
type Reader = { user_id: string; username: string | null; email: string };

const BEGIN_RESET = `select auth.begin_reset($2, $3, ${LIFETIMES.resetLink}, ${SENDER}) as to`;
const BEGIN_VERIFICATION = `select auth.begin_verification($2, $3, ${LIFETIMES.verificationLink}, ${SENDER}) as to`;

export function makeMailLinks({ asOwner, passwords, policy }: Options): MailLinks {
  const request = async (statement: string, whom: string, sender: Sender): Promise<Mail | null> => {
    const token = newSecret();
    const { rows } = await inTransaction(asOwner, (client) =>
      client.query<{ to: string | null }>(statement, [senderValue(sender), whom, digestOf(token)]),
    );
    const { to } = rows[0]!;
    return to === null ? null : { to, token };
  };

  const spend = async (statement: string, values: readonly unknown[]): Promise<void> => {
    const { rows } = await inTransaction(asOwner, (client) =>
      client.query<{ user_id: string | null }>(statement, [...values]),
    );
    if (rows[0]!.user_id === null) throw linkEnded();
  };

  return {
    requestReset: (email, sender) => request(BEGIN_RESET, email, sender),
    requestVerification: (userId, sender) => request(BEGIN_VERIFICATION, userId, sender),

    async resetPassword(token, newPassword, sender) {
      const digest = digestOf(token);
      const { rows } = await asOwner((client) =>
        client.query<Reader>("select * from auth.find_mail_token($1, 'reset')", [digest]),
      );
      // Asked before as well: hashing is too dear for who shows any token.
      if (!rows[0]) throw linkEnded();
      const { username, email } = rows[0];
      checkNewPassword(newPassword, { policy, field: "password", known: [username, email] });
      const hash = await passwords.hash(newPassword);
      await spend(`select auth.reset_password($2, $3, ${SENDER}) as user_id`, [senderValue(sender), digest, hash]);
    },

    async verifyEmail(token, sender) {
      await spend(`select auth.verify_email($2, ${SENDER}) as user_id`, [senderValue(sender), digestOf(token)]);
    },
  };
}

function linkEnded(): ApiError {
  return new ApiError(400, "INVALID_TOKEN", "This link was used before, or has expired.", {
    hint: "Ask for a new one.",
  });
}
