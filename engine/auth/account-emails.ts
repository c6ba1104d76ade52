import type { EmailQueue } from "../mail/email-queue.ts";
import type { Email } from "../mail/mailer.ts";
import type { ClientInfo } from "./client-info.ts";
import type { EmailLink, EmailLinks } from "./email-links.ts";

/** E-mails to users. The functions return at once, so that they do not reveal whether the account exists. */
export type AccountEmails = {
  sendReset(email: string, clientInfo: ClientInfo): void;
  sendVerification(userId: string, clientInfo: ClientInfo): void;
};

/** The pages that links in e-mails open. Opening one has no effect, because mail scanners open all links. */
export const EMAIL_LINK_PATHS = { newPassword: "/auth/new-password", verifyEmail: "/auth/confirm-address" } as const;

type Options = {
  readonly emailLinks: EmailLinks;
  readonly emailQueue: EmailQueue;
  /** The public URL of the service, which never comes from a request's Host header. */
  readonly siteUrl: () => string;
};

export function makeAccountEmails({ emailLinks, emailQueue, siteUrl }: Options): AccountEmails {
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
