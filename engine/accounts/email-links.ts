import { type AsOwner, inOwnerTransaction } from "../database/owner-pool.ts";
import { ApiError } from "../errors.ts";
import { CLIENT_INFO_SQL, type ClientInfo, clientInfoParameter } from "../identity/client-info.ts";
import type { EmailQueue } from "../mail/email-queue.ts";
import type { Email } from "../mail/mailer.ts";
import { LIFETIMES } from "./lifetimes.ts";
import { checkNewPassword, type PasswordPolicy } from "./password-policy.ts";
import type { Passwords } from "./passwords.ts";
import { digestOf, generateSecret } from "./random-secrets.ts";

/** The pages that links in e-mails open. Opening one has no effect, because mail scanners open all links. */
export const EMAIL_LINK_PATHS = { newPassword: "/auth/new-password", verifyEmail: "/auth/confirm-address" } as const;

/** A link to send: the token must appear nowhere else. */
type EmailLink = { readonly to: string; readonly token: string };

/** Operations that are authorized by a link in an e-mail. */
export type EmailLinks = {
  /**
   * Null if there is no account, or an e-mail was sent within the last minute. Respond to the client before calling this,
   * so that neither the response nor its timing reveals whether the account exists.
   */
  requestReset(email: string, clientInfo: ClientInfo): Promise<EmailLink | null>;
  /** Sets the password and ends all sessions and tokens of the user. */
  resetPassword(token: string, newPassword: string, clientInfo: ClientInfo): Promise<void>;
  /** Null if the address is verified already, or an e-mail was sent within the last minute. */
  requestVerification(userId: string, clientInfo: ClientInfo): Promise<EmailLink | null>;
  verifyEmail(token: string, clientInfo: ClientInfo): Promise<void>;
};

type EmailLinksOptions = { readonly asOwner: AsOwner; readonly passwords: Passwords; readonly policy: PasswordPolicy };
type TokenOwner = { user_id: string; username: string | null; email: string };

const BEGIN_RESET = `select auth.begin_reset($2, $3, ${LIFETIMES.resetLink}, ${CLIENT_INFO_SQL}) as to`;
const BEGIN_VERIFICATION = `select auth.begin_verification($2, $3, ${LIFETIMES.verificationLink}, ${CLIENT_INFO_SQL}) as to`;

export function makeEmailLinks({ asOwner, passwords, policy }: EmailLinksOptions): EmailLinks {
  const requestLink = async (
    statement: string,
    recipient: string,
    clientInfo: ClientInfo,
  ): Promise<EmailLink | null> => {
    const token = generateSecret();
    const { rows } = await inOwnerTransaction(asOwner, (client) =>
      client.query<{ to: string | null }>(statement, [clientInfoParameter(clientInfo), recipient, digestOf(token)]),
    );
    const { to } = rows[0]!;
    return to === null ? null : { to, token };
  };

  const useToken = async (statement: string, values: readonly unknown[]): Promise<void> => {
    const { rows } = await inOwnerTransaction(asOwner, (client) =>
      client.query<{ user_id: string | null }>(statement, [...values]),
    );
    if (rows[0]!.user_id === null) throw linkExpired();
  };

  return {
    requestReset: (email, clientInfo) => requestLink(BEGIN_RESET, email, clientInfo),
    requestVerification: (userId, clientInfo) => requestLink(BEGIN_VERIFICATION, userId, clientInfo),

    async resetPassword(token, newPassword, clientInfo) {
      const digest = digestOf(token);
      const { rows } = await asOwner((client) =>
        client.query<TokenOwner>("select * from auth.find_mail_token($1, 'reset')", [digest]),
      );
      // Checked before hashing too, because a hash is too expensive to compute for invalid tokens.
      if (!rows[0]) throw linkExpired();
      const { username, email } = rows[0];
      checkNewPassword(newPassword, { policy, field: "password", personalWords: [username, email] });
      const hash = await passwords.hash(newPassword);
      await useToken(`select auth.reset_password($2, $3, ${CLIENT_INFO_SQL}) as user_id`, [
        clientInfoParameter(clientInfo),
        digest,
        hash,
      ]);
    },

    async verifyEmail(token, clientInfo) {
      await useToken(`select auth.verify_email($2, ${CLIENT_INFO_SQL}) as user_id`, [
        clientInfoParameter(clientInfo),
        digestOf(token),
      ]);
    },
  };
}

function linkExpired(): ApiError {
  return new ApiError("invalid", "INVALID_TOKEN", "This link was used before, or has expired.", {
    hint: "Request a new link.",
  });
}

/** E-mails to users. The functions return at once, so that they do not reveal whether the account exists. */
export type AccountEmails = {
  sendReset(email: string, clientInfo: ClientInfo): void;
  sendVerification(userId: string, clientInfo: ClientInfo): void;
};

type AccountEmailsOptions = {
  readonly emailLinks: EmailLinks;
  readonly emailQueue: EmailQueue;
  /** The public URL of the service, which never comes from a request's Host header. */
  readonly siteUrl: () => string;
};

export function makeAccountEmails({ emailLinks, emailQueue, siteUrl }: AccountEmailsOptions): AccountEmails {
  const linkTo = (page: string, token: string) => `${siteUrl()}${page}?token=${token}`;
  const host = () => new URL(siteUrl()).host;

  const resetEmail = ({ to, token }: EmailLink): Email => ({
    to,
    subject: "Set a new password",
    text: `Somebody, probably you, asked to reset the password of ${to} at ${host()}.

To set a new password, open this link within one hour:

${linkTo(EMAIL_LINK_PATHS.newPassword, token)}

If it was not you, ignore this e-mail: the password stays unchanged.
`,
  });

  const verificationEmail = ({ to, token }: EmailLink): Email => ({
    to,
    subject: "Confirm your e-mail address",
    text: `Somebody, probably you, created an account at ${host()} with the address ${to}.

To confirm your address, open this link within one day:

${linkTo(EMAIL_LINK_PATHS.verifyEmail, token)}

If it was not you, ignore this e-mail.
`,
  });

  return {
    sendReset(email, clientInfo) {
      emailQueue.add(async () => toEmail(await emailLinks.requestReset(email, clientInfo), resetEmail));
    },
    sendVerification(userId, clientInfo) {
      emailQueue.add(async () => toEmail(await emailLinks.requestVerification(userId, clientInfo), verificationEmail));
    },
  };
}

function toEmail(mail: EmailLink | null, write: (mail: EmailLink) => Email): Email | null {
  return mail && write(mail);
}
