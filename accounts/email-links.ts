import type pg from "pg";
import { type AsOwner, inOwnerTransaction } from "#postgres/database";
import { ApiError } from "#runtime";
import { CLIENT_INFO_SQL, type ClientInfo, clientInfoParameter } from "./identity/client-info.ts";
import { LIFETIMES } from "./identity/lifetimes.ts";
import type { EmailQueue } from "./mail/email-queue.ts";
import type { Email } from "./mail/mailer.ts";
import { type SignUp, toSignUpParameter } from "./one-time-codes.ts";
import { checkNewPassword, type PasswordPolicy } from "./password-policy.ts";
import type { Passwords } from "./passwords.ts";
import { digestOf, generateSecret } from "./random-secrets.ts";

/** The pages that links in e-mails open. Opening one has no effect, because mail scanners open all links. */
export const EMAIL_LINK_PATHS = {
  newPassword: "/auth/new-password",
  verifyEmail: "/auth/confirm-address",
  changeEmail: "/auth/change-address",
  invitation: "/auth/invitation",
} as const;

/** The page that sends a link to set a new password. */
export const FORGOTTEN_PASSWORD_PATH = "/auth/forgotten-password";

/** A link to send. The token must not appear anywhere else. */
type EmailLink = { readonly to: string; readonly token: string };

/** A link to the new address, and the address to send a notice to. */
type AddressChange = EmailLink & { readonly previous: string };

/** Operations that are authorized by a link in an e-mail. */
export type EmailLinks = {
  /**
   * Returns null if there is no account, or an e-mail was sent within the last minute. Respond to the client before calling
   * this, so that neither the response nor its timing reveals whether the account exists.
   */
  requestReset(email: string, clientInfo: ClientInfo): Promise<EmailLink | null>;
  /** Sets the password and ends all sessions and tokens of the user. */
  resetPassword(token: string, newPassword: string, clientInfo: ClientInfo): Promise<void>;
  /** Returns null if the address is verified already, or an e-mail was sent within the last minute. */
  requestVerification(userId: string, clientInfo: ClientInfo): Promise<EmailLink | null>;
  /** Returns a link for a sign-up with an address that is taken. Null if it is verified, or an e-mail was sent within the last minute. */
  requestSignUp(email: string, signUp: SignUp, clientInfo: ClientInfo): Promise<EmailLink | null>;
  verifyEmail(token: string, clientInfo: ClientInfo): Promise<void>;
  /** Begins a change for a user who has confirmed the password in this transaction. The address changes when the link is used. */
  beginAddressChange(
    client: pg.ClientBase,
    userId: string,
    email: string,
    clientInfo: ClientInfo,
  ): Promise<AddressChange>;
  /** Returns the previous address. */
  changeAddress(token: string, clientInfo: ClientInfo): Promise<string>;
};

type EmailLinksOptions = { readonly asOwner: AsOwner; readonly passwords: Passwords; readonly policy: PasswordPolicy };
type TokenOwner = { user_id: string; username: string | null; email: string };

const BEGIN_RESET = `select auth.begin_reset($2, $3, ${LIFETIMES.resetLink}, ${CLIENT_INFO_SQL}) as to`;
const BEGIN_VERIFICATION = `select auth.begin_verification($2, $3, ${LIFETIMES.verificationLink}, ${CLIENT_INFO_SQL}) as to`;
const BEGIN_SIGN_UP = `select auth.begin_sign_up($2, $4, $3, ${LIFETIMES.verificationLink}, ${CLIENT_INFO_SQL}) as to`;
const BEGIN_CHANGE = `select auth.begin_email_change($2, $3, $4, ${LIFETIMES.addressChangeLink}, ${CLIENT_INFO_SQL}) as previous`;
const RESET_PASSWORD = `select auth.reset_password($2, $3, ${CLIENT_INFO_SQL}) as user_id`;
const VERIFY_EMAIL = `select auth.verify_email($2, ${CLIENT_INFO_SQL}) as user_id`;
const CHANGE_ADDRESS = `select user_id, previous_email as previous from auth.change_email($2, ${CLIENT_INFO_SQL})`;

export function makeEmailLinks({ asOwner, passwords, policy }: EmailLinksOptions): EmailLinks {
  const requestLink = async (
    statement: string,
    recipient: string,
    clientInfo: ClientInfo,
    ...others: readonly unknown[]
  ): Promise<EmailLink | null> => {
    const token = generateSecret();
    const values = [clientInfoParameter(clientInfo), recipient, digestOf(token), ...others];
    const { rows } = await inOwnerTransaction(asOwner, (client) =>
      client.query<{ to: string | null }>(statement, values),
    );
    const { to } = rows[0]!;
    return to === null ? null : { to, token };
  };

  const useToken = async <Row extends { readonly user_id: string | null }>(
    statement: string,
    values: readonly unknown[],
  ): Promise<Row> => {
    const { rows } = await inOwnerTransaction(asOwner, (client) => client.query<Row>(statement, [...values]));
    if (rows[0]!.user_id === null) throw linkExpired();
    return rows[0]!;
  };

  return {
    requestReset: (email, clientInfo) => requestLink(BEGIN_RESET, email, clientInfo),
    requestVerification: (userId, clientInfo) => requestLink(BEGIN_VERIFICATION, userId, clientInfo),
    requestSignUp: (email, signUp, clientInfo) =>
      requestLink(BEGIN_SIGN_UP, email, clientInfo, toSignUpParameter(signUp)),

    async resetPassword(token, newPassword, clientInfo) {
      const digest = digestOf(token);
      const { rows } = await asOwner((client) =>
        client.query<TokenOwner>("select * from auth.find_mail_token($1, 'reset')", [digest]),
      );
      // The token is checked before hashing too, because a hash is too expensive to compute for invalid tokens.
      if (!rows[0]) throw linkExpired();
      const { username, email } = rows[0];
      checkNewPassword(newPassword, { policy, field: "password", personalWords: [username, email] });
      const hash = await passwords.hash(newPassword, { ...clientInfo, account: username, isKnown: true });
      await useToken(RESET_PASSWORD, [clientInfoParameter(clientInfo), digest, hash]);
    },

    async verifyEmail(token, clientInfo) {
      await useToken(VERIFY_EMAIL, [clientInfoParameter(clientInfo), digestOf(token)]);
    },

    async beginAddressChange(client, userId, email, clientInfo) {
      const token = generateSecret();
      const values = [clientInfoParameter(clientInfo), userId, email, digestOf(token)];
      const { rows } = await client.query<{ previous: string }>(BEGIN_CHANGE, values);
      return { to: email, token, previous: rows[0]!.previous };
    },

    async changeAddress(token, clientInfo) {
      const values = [clientInfoParameter(clientInfo), digestOf(token)];
      return (await useToken<{ user_id: string | null; previous: string }>(CHANGE_ADDRESS, values)).previous;
    },
  };
}

export function linkExpired(): ApiError {
  return new ApiError("invalid", "INVALID_TOKEN", "This link was used before, or has expired.", {
    hint: "Request a new link.",
  });
}

/** E-mails to users. The functions return at once, so that they do not reveal whether the account exists. */
export type AccountEmails = {
  sendReset(email: string, clientInfo: ClientInfo): void;
  sendVerification(userId: string, clientInfo: ClientInfo): void;
  /** Sends the link of a sign-up with an address that is taken. */
  sendSignUp(email: string, signUp: SignUp, clientInfo: ClientInfo): void;
  /** Sends the link to the new address, and a notice to the current one. */
  sendAddressChange(change: AddressChange): void;
  /** Sends a notice to the previous address. */
  sendAddressChanged(previous: string): void;
};

type AccountEmailsOptions = {
  readonly emailLinks: EmailLinks;
  readonly emailQueue: EmailQueue;
  /** The public URL of the service, which never comes from a request's Host header. */
  readonly siteUrl: () => string;
};

export function makeAccountEmails({ emailLinks, emailQueue, siteUrl }: AccountEmailsOptions): AccountEmails {
  const texts = new AccountEmailTexts(siteUrl);
  return {
    sendAddressChange(change) {
      emailQueue.add(async () => texts.addressChange(change));
      emailQueue.add(async () => texts.addressChangeNotice(change.previous));
    },
    sendAddressChanged(previous) {
      emailQueue.add(async () => texts.addressChanged(previous));
    },
    sendReset(email, clientInfo) {
      emailQueue.add(async () =>
        toEmail(await emailLinks.requestReset(email, clientInfo), (link) => texts.reset(link)),
      );
    },
    sendVerification(userId, clientInfo) {
      emailQueue.add(async () =>
        toEmail(await emailLinks.requestVerification(userId, clientInfo), (link) => texts.verification(link)),
      );
    },
    sendSignUp(email, signUp, clientInfo) {
      emailQueue.add(async () =>
        toEmail(await emailLinks.requestSignUp(email, signUp, clientInfo), (link) => texts.verification(link)),
      );
    },
  };
}

class AccountEmailTexts {
  readonly #siteUrl: () => string;

  constructor(siteUrl: () => string) {
    this.#siteUrl = siteUrl;
  }

  reset({ to, token }: EmailLink): Email {
    return {
      to,
      subject: "Set a new password",
      text: `Somebody, probably you, asked to reset the password of ${to} at ${this.#host()}.

To set a new password, open this link within one hour:

${this.#linkTo(EMAIL_LINK_PATHS.newPassword, token)}

If you did not request this e-mail, ignore it: the password stays unchanged.
`,
    };
  }

  verification({ to, token }: EmailLink): Email {
    return {
      to,
      subject: "Confirm your e-mail address",
      text: `Somebody, probably you, created an account at ${this.#host()} with the address ${to}.

To confirm your address, open this link within one day:

${this.#linkTo(EMAIL_LINK_PATHS.verifyEmail, token)}

If you did not request this e-mail, ignore it.
`,
    };
  }

  addressChange({ to, token }: EmailLink): Email {
    return {
      to,
      subject: "Confirm your new e-mail address",
      text: `Somebody, probably you, asked to use ${to} for an account at ${this.#host()}.

To use this address from now on, open this link within one hour:

${this.#linkTo(EMAIL_LINK_PATHS.changeEmail, token)}

If you did not request this e-mail, ignore it.
`,
    };
  }

  addressChangeNotice(to: string): Email {
    return {
      to,
      subject: "Your e-mail address is about to change",
      text: `Somebody, probably you, asked to use another e-mail address for your account at ${this.#host()}.
It changes when the new address is confirmed.

If you did not ask for this, somebody knows your password. Set a new one now, which also stops the change:

${this.#siteUrl()}${FORGOTTEN_PASSWORD_PATH}
`,
    };
  }

  addressChanged(to: string): Email {
    return {
      to,
      subject: "Your e-mail address has changed",
      text: `The e-mail address of your account at ${this.#host()} has been changed. E-mails go to the new address from now on.

If you did not change it, ask the operator of the service for help.
`,
    };
  }

  #linkTo(page: string, token: string): string {
    return `${this.#siteUrl()}${page}?token=${token}`;
  }

  #host(): string {
    return new URL(this.#siteUrl()).host;
  }
}

function toEmail(mail: EmailLink | null, write: (mail: EmailLink) => Email): Email | null {
  return mail && write(mail);
}
