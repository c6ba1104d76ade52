import type pg from "pg";
import { type AsOwner, inOwnerTransaction } from "#postgres/database";
import { ApiError } from "#runtime";
import { emailTaken } from "./account-links.ts";
import { insertUser } from "./administration.ts";
import { type CodeEmailSettings, findRecipient } from "./code-emails.ts";
import { EMAIL_LINK_PATHS, linkExpired } from "./email-links.ts";
import { CLIENT_INFO_SQL, type ClientInfo, clientInfoParameter } from "./identity/client-info.ts";
import { LIFETIMES } from "./identity/lifetimes.ts";
import { type OpenSignIn, PASSWORD_PROOF } from "./login.ts";
import type { EmailQueue } from "./mail/email-queue.ts";
import type { Email } from "./mail/mailer.ts";
import { toSignUpParameter } from "./one-time-codes.ts";
import { checkNewPassword, type PasswordPolicy } from "./password-policy.ts";
import type { Passwords } from "./passwords.ts";
import { digestOf, generateSecret } from "./random-secrets.ts";

type NewInvitation = { readonly email: string; readonly role: string };
type FoundInvitation = NewInvitation & { readonly project: string };
type AcceptedInvitation<T> = { readonly opened: T; readonly isAdministrator: boolean };

/** Invitations of users by administrators, with the role that the user gets by accepting. */
export type Invitations = {
  /** Creates the account, unless it exists and is not confirmed, and sends the link. Returns the id of the account. */
  send(invitation: NewInvitation, clientInfo: ClientInfo): Promise<string>;
  /** Sends an invitation whose link leads nowhere, at once. Rejects if the server of e-mails refuses it. */
  sendSample(to: string, clientInfo: ClientInfo): Promise<void>;
  /** Returns null if the link cannot be used. */
  find(token: string): Promise<FoundInvitation | null>;
  /** Sets the password and the role, and signs the user in. */
  accept<T>(
    token: string,
    password: string,
    clientInfo: ClientInfo,
    open: OpenSignIn<T>,
  ): Promise<AcceptedInvitation<T>>;
};

type InvitationsOptions = {
  readonly asOwner: AsOwner;
  readonly passwords: Passwords;
  readonly policy: PasswordPolicy;
  /** Null if this deployment sends no e-mails. */
  readonly emailQueue: EmailQueue | null;
  readonly settings: CodeEmailSettings | null;
  readonly siteUrl: () => string;
};

const BEGIN = `select auth.begin_invitation($2, $3, $4, ${LIFETIMES.invitation}, $5, ${CLIENT_INFO_SQL}) as email`;
const ACCEPT = `select auth.accept_invitation($2, $3, ${CLIENT_INFO_SQL}) as user_id`;
const SAMPLE_TOKEN = "sample";

export function makeInvitations(options: InvitationsOptions): Invitations {
  const { asOwner, passwords, policy } = options;
  const find = async (token: string) => {
    const { rows } = await asOwner((client) =>
      client.query<NewInvitation>("select email, role from auth.find_invitation($1)", [digestOf(token)]),
    );
    return rows[0] ?? null;
  };

  return {
    async send({ email, role }, clientInfo) {
      const { emailQueue, writeEmail } = requireEmails(options);
      const token = generateSecret();
      const sent = await inOwnerTransaction(asOwner, async (client) => {
        const { state, user_id: found } = await findRecipient(client, email);
        if (state !== "absent" && state !== "unconfirmed") throw emailTaken();
        const name = email.split("@", 1)[0]!;
        const userId = found ?? (await insertUser(client, { name, email }, null, clientInfo));
        const signUp = toSignUpParameter({ name, passwordHash: null, metadata: {} });
        const values = [clientInfoParameter(clientInfo), digestOf(token), userId, role, signUp];
        const { rows } = await client.query<{ email: string }>(BEGIN, values);
        return { userId, to: rows[0]!.email, inviter: await readInviter(client, clientInfo) };
      });
      emailQueue.add(() => asOwner((client) => writeEmail(client, { ...sent, token })));
      return sent.userId;
    },

    async sendSample(to, clientInfo) {
      const { emailQueue, writeEmail } = requireEmails(options);
      const email = await asOwner(async (client) => {
        const inviter = await readInviter(client, clientInfo);
        return writeEmail(client, { to, inviter, token: SAMPLE_TOKEN });
      });
      await emailQueue.sendNow(email);
    },

    async find(token) {
      const found = await find(token);
      return found && { ...found, project: projectName(options) };
    },

    async accept(token, password, clientInfo, open) {
      // The link is checked before hashing too, because a hash is too expensive to compute for invalid links.
      const invitation = await find(token);
      if (!invitation) throw linkExpired();
      const { email } = invitation;
      checkNewPassword(password, { policy, field: "password", personalWords: [email] });
      const hash = await passwords.hash(password, { ...clientInfo, account: email, isKnown: true });
      return inOwnerTransaction(asOwner, async (client) => {
        const values = [clientInfoParameter(clientInfo), digestOf(token), hash];
        const { rows } = await client.query<{ user_id: string | null }>(ACCEPT, values);
        const { user_id: userId } = rows[0]!;
        if (userId === null) throw linkExpired();
        const administrators = await client.query<{ is: boolean }>("select auth.may_invite($1) as is", [userId]);
        const opened = await open(client, userId, clientInfo, PASSWORD_PROOF);
        return { opened, isAdministrator: administrators.rows[0]!.is };
      });
    },
  };
}

type InvitationEmail = { readonly to: string; readonly inviter: string; readonly token: string };

function requireEmails(options: InvitationsOptions): {
  readonly emailQueue: EmailQueue;
  readonly writeEmail: (client: pg.ClientBase, email: InvitationEmail) => Promise<Email>;
} {
  const { emailQueue, settings, siteUrl } = options;
  if (!emailQueue || !settings)
    throw new ApiError("unavailable", "SERVICE_UNAVAILABLE", "This deployment sends no e-mails.");
  const writeEmail = (client: pg.ClientBase, { to, inviter, token }: InvitationEmail) =>
    settings.mailTemplates.write(client, "invitation", to, {
      ConfirmationURL: `${siteUrl()}${EMAIL_LINK_PATHS.invitation}?token=${token}`,
      Token: "",
      TokenHash: "",
      SiteURL: settings.applicationUrl(),
      Email: to,
      NewEmail: "",
      Data: {},
      RedirectTo: "",
      Inviter: inviter,
      Project: projectName(options),
    });
  return { emailQueue, writeEmail };
}

/** Returns the name that e-mails are sent in, or the host of the application. */
function projectName({ settings, siteUrl }: Pick<InvitationsOptions, "settings" | "siteUrl">): string {
  const sender = settings?.mailFrom ?? "";
  const name = sender
    .slice(0, Math.max(0, sender.indexOf("<")))
    .replaceAll('"', "")
    .trim();
  return name || new URL(settings?.applicationUrl() ?? siteUrl()).host;
}

/** Returns `Ada (ada@example.org)`. */
async function readInviter(client: pg.ClientBase, { actor = null }: ClientInfo): Promise<string> {
  const { rows } = await client.query<{ name: string | null; email: string | null }>(
    "select name, email from auth.profile_of($1)",
    [actor],
  );
  const { name = null, email = null } = rows[0] ?? {};
  if (name === null || name === email) return email ?? "An administrator";
  return email === null ? name : `${name} (${email})`;
}
