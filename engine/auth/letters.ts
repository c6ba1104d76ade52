import type { EmailQueue } from "../mail/email-queue.ts";
import type { Email } from "../mail/mailer.ts";
import type { Mail, MailLinks } from "./mail-links.ts";
import type { Sender } from "./sender.ts";

/** What users are sent. Each returns at once, and tells nobody whether there is somebody to send it to. */
export type Letters = {
  offerReset(email: string, sender: Sender): void;
  offerVerification(userId: string, sender: Sender): void;
};

/** The pages that the links lead to. Opening one does nothing yet: programs that look through mails open all of them. */
export const LINKED_PAGES = { newPassword: "/auth/new-password", verifyEmail: "/auth/confirm-address" } as const;

type Options = {
  readonly mailLinks: MailLinks;
  readonly outbox: EmailQueue;
  /** Where clients reach us; never what a request says of it. */
  readonly siteUrl: () => string;
};

export function makeLetters({ mailLinks, outbox, siteUrl }: Options): Letters {
  const linkTo = (page: string, token: string) => `${siteUrl()}${page}?token=${token}`;
  const host = () => new URL(siteUrl()).host;

  const resetLetter = ({ to, token }: Mail): Email => ({
    to,
    subject: "Set a new password",
    text: `Somebody, probably you, wants to set a new password at ${host()} for ${to}.

To set one, open this address within an hour:

${linkTo(LINKED_PAGES.newPassword, token)}

If it was not you, there is nothing to do: the password stays as it is.
`,
  });

  const verificationLetter = ({ to, token }: Mail): Email => ({
    to,
    subject: "Confirm your e-mail address",
    text: `Somebody, probably you, has signed up at ${host()} as ${to}.

To confirm that this is your address, open this one within a day:

${linkTo(LINKED_PAGES.verifyEmail, token)}

If it was not you, there is nothing to do.
`,
  });

  return {
    offerReset(email, sender) {
      outbox.add(async () => asLetter(await mailLinks.requestReset(email, sender), resetLetter));
    },
    offerVerification(userId, sender) {
      outbox.add(async () => asLetter(await mailLinks.requestVerification(userId, sender), verificationLetter));
    },
  };
}

function asLetter(mail: Mail | null, write: (mail: Mail) => Email): Email | null {
  return mail && write(mail);
}
