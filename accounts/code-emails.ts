import pg from "pg";
import { type AsOwner, inOwnerTransaction } from "#postgres/database";
import type { SharedRateLimit } from "#postgres/rate-limits";
import { ApiError, shortenText } from "#runtime";
import type { CodeChallenge, FlowStates } from "./flow-states.ts";
import { CLIENT_INFO_SQL, type ClientInfo, clientInfoParameter } from "./identity/client-info.ts";
import type { SignInMethod } from "./login.ts";
import type { MailName } from "./mail/default-templates.ts";
import type { EmailQueue } from "./mail/email-queue.ts";
import type { MailTemplates } from "./mail/mail-templates.ts";
import type { Email } from "./mail/mailer.ts";
import type { CodePurpose, MailSecrets, OneTimeCodes, SignUp } from "./one-time-codes.ts";
import { digestOf } from "./random-secrets.ts";

/** The path that links lead to. Opening a link signs the user in. */
const VERIFY_PATH = "/auth/v1/verify";

/** The options of the sign-in that the link of a requested e-mail completes. */
export type CodeRequest = {
  /** The URL that the link redirects to; it must be an allowed URL. */
  readonly redirectTo: string;
  /** Null if the link leads to tokens, not to a code for them. */
  readonly codeChallenge: CodeChallenge | null;
};

/** Creates an account for an address without one. */
export type NewUser = { readonly metadata: Readonly<Record<string, unknown>> };

type LinkType = "signup" | "invite" | "magiclink" | "recovery" | "email_change" | "reauthentication";

/** The parts of a link in an e-mail, for administrators who send it themselves. */
export type MailLink = MailSecrets & { readonly url: string; readonly type: LinkType };

/**
 * E-mails with a link and a code. Each function counts the e-mail by its address and returns; the rest of the work is done
 * after the response, so that neither the response nor its timing depends on whether there is an account.
 */
export type CodeEmails = {
  /** With `newUser`, it creates the account if there is none. */
  requestSignIn(email: string, request: CodeRequest, newUser: NewUser | null, clientInfo: ClientInfo): Promise<void>;
  requestRecovery(email: string, request: CodeRequest, clientInfo: ClientInfo): Promise<void>;
  /** Sends an e-mail to an account whose address is not confirmed. Without `signUp`, it is the e-mail of the earlier sign-up again. */
  requestConfirmation(email: string, request: CodeRequest, signUp: SignUp | null): Promise<void>;
  /** Sends the links of a pending change of address again. */
  repeatEmailChange(email: string, request: CodeRequest): Promise<void>;
  /** Sends a code that confirms a change by a user who is signed in. */
  requestReauthentication(userId: string): Promise<void>;
  /** Must run in a transaction that has locked the account. The returned function sends the e-mails, after the transaction. */
  beginEmailChange(client: pg.ClientBase, change: EmailChange, request: CodeRequest): Promise<() => void>;
  /** Must run in a transaction that has locked the account, which has just been created or is unconfirmed. */
  beginInvitation(client: pg.ClientBase, invited: InvitationRecipient, request: CodeRequest): Promise<() => void>;
  hasAccount(email: string): Promise<boolean>;
  /** Throws 429 if an e-mail of this kind was sent to this address a moment ago, or too many within the hour. */
  readonly count: CountMessage;
};

export type CountMessage = (kind: string, address: string) => Promise<void>;

type InvitationRecipient = {
  readonly userId: string;
  readonly email: string;
  readonly name: string;
  readonly metadata: Readonly<Record<string, unknown>>;
};
type EmailChange = {
  readonly userId: string;
  /** Null if the account has no address yet. */
  readonly currentEmail: string | null;
  /** The last address that the user has confirmed, which may be another one; null if there is none. */
  readonly verifiedEmail: string | null;
  readonly newEmail: string;
  readonly metadata: Readonly<Record<string, unknown>>;
};
type NewLink = {
  readonly redirectTo: string;
  readonly purpose: Exclude<CodePurpose, "reauthentication" | "sms" | "sms_signup" | "phone_change">;
  readonly userId: string;
  readonly email: string;
  readonly newEmail?: string;
  readonly signUp?: SignUp | null;
};

type CodeEmailsOptions = CodeEmailSettings & {
  readonly asOwner: AsOwner;
  readonly codes: OneTimeCodes;
  readonly flows: FlowStates;
  readonly emailQueue: EmailQueue;
  /** The public URL of the service, which never comes from a request's Host header. */
  readonly serviceUrl: () => string;
};

type MessageLimits = {
  /** Null if there is no limit. */
  readonly intervalLimit: SharedRateLimit | null;
  readonly hourlyLimit: SharedRateLimit | null;
};

export type CodeEmailSettings = MessageLimits & {
  readonly mailTemplates: MailTemplates;
  /** The sender, for example `Example <no-reply@example.com>`. */
  readonly mailFrom: string | null;
  /** The URL of the application. */
  readonly applicationUrl: () => string;
  readonly secureEmailChange: boolean;
  /** True if the first sign-in link confirms an account that was created for an address. */
  readonly autoConfirm: boolean;
};

export type Recipient = {
  readonly user_id: string | null;
  readonly address: string | null;
  readonly state: "absent" | "disabled" | "unconfirmed" | "confirmed";
  readonly metadata: Readonly<Record<string, unknown>> | null;
  readonly new_email: string | null;
};

const HAS_ACCOUNT = "select exists (select from auth.users where pg_catalog.lower(email) = pg_catalog.lower($1))";
const FIND_RECIPIENT = "select * from auth.code_recipient($1)";
const REGISTER = `select auth.sign_up($2, $3, null, null, null, ${CLIENT_INFO_SQL}, $4) ->> 'id' as id`;
const READ_ACCOUNT = `
  select account.user_id, account.raw_user_meta_data as metadata, coalesce(account.verified_email, account.email) as address, 'confirmed' as state,
    null as new_email
  from auth.lock_account($1) as account where account.user_id is not null`;

/** Each purpose has a template, a type, which the link names, and a way to sign in. */
const MAILS = {
  signup: { name: "confirmation", type: "signup", method: "email/signup" },
  invite: { name: "invite", type: "invite", method: "invite" },
  magiclink: { name: "magic_link", type: "magiclink", method: "magiclink" },
  recovery: { name: "recovery", type: "recovery", method: "recovery" },
  email_change_current: { name: "email_change", type: "email_change", method: "email_change" },
  email_change_new: { name: "email_change", type: "email_change", method: "email_change" },
  reauthentication: { name: "reauthentication", type: "reauthentication", method: "otp" },
} satisfies Partial<Record<CodePurpose, MailKind>>;

type MailKind = { readonly name: MailName; readonly type: LinkType; readonly method: SignInMethod };

type MailPurpose = keyof typeof MAILS;

type NewMail = {
  readonly purpose: MailPurpose;
  /** The template and the type of the link, if they are not those of the purpose. */
  readonly kind?: MailPurpose;
  readonly userId: string;
  readonly to: string;
  /** The address that the client enters with the code. */
  readonly enteredWith: string;
  readonly newEmail?: string;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly signUp?: SignUp | null;
};

export function makeCodeEmails(options: CodeEmailsOptions): CodeEmails {
  return new QueuedCodeEmails(options);
}

class QueuedCodeEmails implements CodeEmails {
  readonly #options: CodeEmailsOptions;

  constructor(options: CodeEmailsOptions) {
    this.#options = options;
  }

  async requestSignIn(email: string, request: CodeRequest, newUser: NewUser | null, clientInfo: ClientInfo) {
    await this.count("sign-in", email);
    this.#queue(async (client) => {
      const recipient = await findRecipient(client, email);
      if (recipient.state === "disabled") return null;
      if (recipient.state === "absent") {
        if (!newUser) return null;
        const signUp = signUpOf(email, newUser);
        const userId = await register(client, email, signUp, clientInfo);
        const { metadata } = newUser;
        const kind = this.#options.autoConfirm ? "magiclink" : "signup";
        const mail: NewMail = { purpose: "magiclink", kind, userId, to: email, enteredWith: email, metadata, signUp };
        return this.#prepare(client, mail, request);
      }
      // The purpose of a sign-up would confirm the password of the person who registered the address, so it is not used here.
      const kind = recipient.state === "confirmed" ? "magiclink" : "signup";
      const signUp = kind === "signup" && newUser ? signUpOf(email, newUser) : null;
      return this.#prepare(client, { ...mailTo(recipient, "magiclink", email), kind, signUp }, request);
    });
  }

  async requestRecovery(email: string, request: CodeRequest, clientInfo: ClientInfo) {
    await this.count("recovery", email);
    this.#queue(async (client) => {
      const recipient = await findRecipient(client, email);
      if (recipient.state === "absent" || recipient.state === "disabled") return null;
      await client.query(`select auth.log_event('password.reset_requested', $2, ${CLIENT_INFO_SQL})`, [
        clientInfoParameter(clientInfo),
        recipient.user_id,
      ]);
      return this.#prepare(client, mailTo(recipient, "recovery", email), request);
    });
  }

  async requestConfirmation(email: string, request: CodeRequest, signUp: SignUp | null) {
    await this.count("signup", email);
    this.#queue(async (client) => {
      const recipient = await findRecipient(client, email);
      if (recipient.state !== "unconfirmed") return null;
      const mail = mailTo(recipient, "signup", email);
      return this.#prepare(client, { ...mail, metadata: signUp?.metadata ?? mail.metadata, signUp }, request);
    });
  }

  async repeatEmailChange(email: string, request: CodeRequest) {
    await this.count("email_change", email);
    this.#queueAll(async (client) => {
      const { user_id: userId, new_email: newEmail, address, state, metadata } = await findRecipient(client, email);
      if (userId === null || newEmail === null || state === "disabled") return [];
      const isVerified = state === "confirmed" || address?.toLowerCase() !== email.toLowerCase();
      const verifiedEmail = isVerified ? address : null;
      const change = { userId, currentEmail: email, verifiedEmail, newEmail, metadata: metadata ?? {} };
      return this.#prepareEmailChange(client, change, request);
    });
  }

  async requestReauthentication(userId: string) {
    await this.count("reauthentication", userId);
    this.#queue(async (client) => {
      const { rows } = await client.query<Recipient>(READ_ACCOUNT, [userId]);
      if (!rows[0]?.address) return null;
      const mail = mailTo(rows[0], "reauthentication", userId);
      return this.#prepare(client, mail, { redirectTo: this.#options.applicationUrl(), codeChallenge: null });
    });
  }

  async beginEmailChange(client: pg.ClientBase, change: EmailChange, request: CodeRequest) {
    const emails = await this.#prepareEmailChange(client, change, request);
    return () => {
      for (const email of emails) this.#options.emailQueue.add(async () => email);
    };
  }

  async beginInvitation(
    client: pg.ClientBase,
    { userId, email, name, metadata }: InvitationRecipient,
    request: CodeRequest,
  ): Promise<() => void> {
    const signUp = { name, passwordHash: null, metadata };
    const mail: NewMail = { purpose: "invite", userId, to: email, enteredWith: email, metadata, signUp };
    const prepared = await this.#prepare(client, mail, request);
    return () => this.#options.emailQueue.add(async () => prepared);
  }

  async hasAccount(email: string) {
    const { rows } = await this.#options.asOwner((client) => client.query<{ exists: boolean }>(HAS_ACCOUNT, [email]));
    return rows[0]!.exists;
  }

  count(kind: string, address: string) {
    return countMessage(this.#options, kind, address);
  }

  async #prepareEmailChange(client: pg.ClientBase, change: EmailChange, request: CodeRequest): Promise<Email[]> {
    const { userId, currentEmail, verifiedEmail, newEmail, metadata } = change;
    await client.query("select auth.cancel_email_change($1)", [userId]);
    const sides: NewMail[] = [
      { purpose: "email_change_new", userId, to: newEmail, enteredWith: newEmail, newEmail, metadata },
    ];
    if (verifiedEmail !== null && this.#options.secureEmailChange) {
      const enteredWith = currentEmail ?? verifiedEmail;
      sides.push({ ...sides[0]!, purpose: "email_change_current", to: verifiedEmail, enteredWith });
    }
    const emails: Email[] = [];
    for (const side of sides) emails.push(await this.#prepare(client, side, request));
    return emails;
  }

  async #prepare(client: pg.ClientBase, mail: NewMail, { redirectTo, codeChallenge }: CodeRequest): Promise<Email> {
    const { codes, flows, mailTemplates, applicationUrl } = this.#options;
    const { purpose, kind = purpose, userId, to, enteredWith, newEmail, metadata, signUp = null } = mail;
    const { name, type, method } = MAILS[kind];
    const flowId = codeChallenge && (await flows.begin(client, { codeChallenge, method, userId }));
    const newAddress = newEmail === undefined ? {} : { newAddress: newEmail };
    const { token, code } = await codes.add(client, {
      purpose,
      userId,
      to,
      enteredWith,
      flowId,
      signUp,
      ...newAddress,
    });
    return mailTemplates.write(client, name, to, {
      ConfirmationURL: linkTo(this.#options, { token, type, redirectTo }),
      Token: code,
      TokenHash: token,
      SiteURL: applicationUrl(),
      Email: to,
      NewEmail: newEmail ?? "",
      Data: metadata,
      RedirectTo: redirectTo,
      Inviter: "",
      Project: "",
    });
  }

  #queue(prepare: (client: pg.ClientBase) => Promise<Email | null>): void {
    const { asOwner, emailQueue } = this.#options;
    emailQueue.add(() => inOwnerTransaction(asOwner, prepare).catch(ignoreRefusal));
  }

  /** The e-mails are prepared together, and sent one by one. */
  #queueAll(prepare: (client: pg.ClientBase) => Promise<Email[]>): void {
    const { asOwner, emailQueue } = this.#options;
    emailQueue.add(async () => {
      const [first = null, ...others] = await inOwnerTransaction(asOwner, prepare);
      for (const email of others) emailQueue.add(async () => email);
      return first;
    });
  }
}

type LinkOptions = Pick<CodeEmailsOptions, "codes" | "serviceUrl">;

/** Creates a link that is not sent. Must run in a transaction that has locked the account. */
export async function makeMailLink(client: pg.ClientBase, options: LinkOptions, link: NewLink): Promise<MailLink> {
  const { purpose, userId, email, newEmail, redirectTo, signUp = null } = link;
  const code = { purpose, userId, to: email, signUp, ...(newEmail !== undefined && { newAddress: newEmail }) };
  const secrets = await options.codes.add(client, code);
  const { type } = MAILS[purpose];
  return { ...secrets, type, url: linkTo(options, { token: secrets.token, type, redirectTo }) };
}

type LinkParts = { readonly token: string; readonly type: LinkType; readonly redirectTo: string };

function linkTo({ serviceUrl }: Pick<LinkOptions, "serviceUrl">, { token, type, redirectTo }: LinkParts): string {
  // Supabase encodes it in this way: a URL without a query stays readable.
  const target = /[?&#+%\s]/.test(redirectTo) ? encodeURIComponent(redirectTo) : redirectTo;
  return `${serviceUrl()}${VERIFY_PATH}?token=${token}&type=${type}&redirect_to=${target}`;
}

/** Throws 429 if a message of this kind was sent to this address a moment ago, or too many within the hour. */
export async function countMessage({ intervalLimit, hourlyLimit }: MessageLimits, kind: string, address: string) {
  const key = digestOf(address.toLowerCase()).toString("base64url");
  const seconds = (await intervalLimit?.take(`${kind} ${key}`)) ?? (await hourlyLimit?.take(key)) ?? null;
  if (seconds === null) return;
  throw new ApiError(
    "rateLimited",
    kind === "sms" ? "SMS_RATE_LIMITED" : "EMAIL_RATE_LIMITED",
    `For security purposes, you can only request this after ${seconds} seconds.`,
    { retryAfterSeconds: seconds },
  );
}

function mailTo(recipient: Recipient, purpose: MailPurpose, enteredWith: string): NewMail {
  return {
    purpose,
    userId: recipient.user_id!,
    to: recipient.address!,
    enteredWith,
    metadata: recipient.metadata ?? {},
  };
}

/** Finds the recipient and locks the account. */
export async function findRecipient(client: pg.ClientBase, email: string): Promise<Recipient> {
  const { rows } = await client.query<Recipient>(FIND_RECIPIENT, [email]);
  return rows[0]!;
}

/** Returns the values that the account gets once the link or the code has proved the address. */
function signUpOf(email: string, { metadata }: NewUser): SignUp {
  const [localPart = email] = email.split("@");
  const name = typeof metadata.name === "string" && metadata.name.trim() !== "" ? metadata.name : localPart;
  return { name: shortenText(name, 200), passwordHash: null, metadata };
}

async function register(
  client: pg.ClientBase,
  email: string,
  { name, metadata }: SignUp,
  clientInfo: ClientInfo,
): Promise<string> {
  const values = [clientInfoParameter(clientInfo), name, email, JSON.stringify(metadata)];
  const { rows } = await client.query<{ id: string }>(REGISTER, values);
  return rows[0]!.id;
}

/** The client is not told why a registration is refused: another request was faster, or the address is not acceptable. */
function ignoreRefusal(error: unknown): null {
  if (error instanceof pg.DatabaseError && (error.code === "TAKEN" || error.code === "WRONG")) return null;
  throw error;
}
