import type pg from "pg";
import { type AsOwner, inOwnerTransaction } from "#postgres/database";
import { ApiError } from "#runtime";
import { insertUser, type NewUserAccount } from "./administration.ts";
import { type CodeEmails, findRecipient, type MailLink, makeMailLink, type Recipient } from "./code-emails.ts";
import { CLIENT_INFO_SQL, type ClientInfo, clientInfoParameter } from "./identity/client-info.ts";
import type { OneTimeCodes, SignUp } from "./one-time-codes.ts";
import { setUserMetadata } from "./own-account.ts";
import { checkNewPassword, type PasswordPolicy } from "./password-policy.ts";
import type { Passwords } from "./passwords.ts";

type EmailChangeType = "email_change_current" | "email_change_new";
export type AccountLinkType = "signup" | "invite" | "magiclink" | "recovery" | EmailChangeType;

export type AccountLinkRequest = {
  readonly type: AccountLinkType;
  readonly email: string;
  /** The new address of a change of address. */
  readonly newEmail: string;
  /** The password of an account that the link creates; null if it has none. */
  readonly password: string | null;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly name: string;
  readonly redirectTo: string;
};

/** A link for an account, which the administrator who requested it sends. `type` is the effect of the link on this account. */
type AccountLink = { readonly userId: string; readonly type: AccountLinkType; readonly link: MailLink };

type Invitation = Pick<AccountLinkRequest, "email" | "metadata" | "name" | "redirectTo">;

/** Links for users, by administrators. */
export type AccountLinks = {
  make(request: AccountLinkRequest, clientInfo: ClientInfo): Promise<AccountLink>;
  /** Creates the account, unless it exists and is not confirmed, and sends the link. Returns its key. */
  invite(invitation: Invitation, clientInfo: ClientInfo): Promise<string>;
};

type AccountLinksOptions = {
  readonly asOwner: AsOwner;
  readonly passwords: Passwords;
  readonly policy: PasswordPolicy;
  readonly codes: OneTimeCodes;
  /** Null if this deployment sends no e-mails. */
  readonly codeEmails: CodeEmails | null;
  readonly secureEmailChange: boolean;
  readonly serviceUrl: () => string;
};

export function makeAccountLinks(options: AccountLinksOptions): AccountLinks {
  const { asOwner, passwords, policy, codeEmails } = options;

  return {
    async make(request, clientInfo) {
      const { email, name, password } = request;
      if (password !== null) checkNewPassword(password, { policy, field: "password", personalWords: [name, email] });
      // The password is hashed before the transaction, because hashing would hold it open.
      const hash = password === null ? null : await passwords.hash(password, { ...clientInfo, isKnown: true });
      return inOwnerTransaction(asOwner, async (client) => {
        const recipient = await findRecipient(client, email);
        const type = request.type === "magiclink" && recipient.state === "absent" ? "signup" : request.type;
        const userId = await findOrCreateUser(client, { ...request, type, recipient, hash }, clientInfo);
        const isNewUser = type === "signup" || type === "invite";
        const signUp = isNewUser ? { name, passwordHash: hash, metadata: request.metadata } : null;
        const link = await makeLink(client, options, { ...request, type, userId, signUp });
        return { userId, type, link };
      });
    },

    async invite(invitation, clientInfo) {
      if (!codeEmails) throw new ApiError("unavailable", "SERVICE_UNAVAILABLE", "This deployment sends no e-mails.");
      const { email, name, metadata, redirectTo } = invitation;
      const { userId, send } = await inOwnerTransaction(asOwner, async (client) => {
        const recipient = await findRecipient(client, email);
        const invited = { ...invitation, type: "invite", recipient, hash: null } as const;
        const userId = await findOrCreateUser(client, invited, clientInfo);
        const request = { redirectTo, codeChallenge: null };
        return { userId, send: await codeEmails.beginInvitation(client, { userId, email, name, metadata }, request) };
      });
      send();
      return userId;
    },
  };
}

type UserOfLink = Pick<AccountLinkRequest, "type" | "email" | "metadata" | "name"> & {
  readonly recipient: Recipient;
  readonly hash: string | null;
};

async function findOrCreateUser(
  client: pg.ClientBase,
  { type, email, metadata, name, recipient, hash }: UserOfLink,
  clientInfo: ClientInfo,
): Promise<string> {
  const isNewUser = type === "signup" || type === "invite";
  if (isNewUser && recipient.state !== "absent" && recipient.state !== "unconfirmed") throw emailTaken();
  if (!isNewUser && recipient.user_id === null) {
    throw new ApiError("notFound", "RESOURCE_NOT_FOUND", "No user has this e-mail address.");
  }
  const user: NewUserAccount = { name, email, ...(Object.keys(metadata).length > 0 && { user_metadata: metadata }) };
  const userId = recipient.user_id ?? (await insertUser(client, user, hash, clientInfo));
  if (isNewUser && recipient.user_id !== null) {
    await setUserMetadata(client, userId, metadata);
  }
  if (type === "invite") {
    await client.query(`select auth.invite_account($2, ${CLIENT_INFO_SQL})`, [clientInfoParameter(clientInfo), userId]);
  }
  return userId;
}

type LinkOfUser = Pick<AccountLinkRequest, "type" | "email" | "newEmail" | "redirectTo"> & {
  readonly userId: string;
  readonly signUp: SignUp | null;
};

async function makeLink(client: pg.ClientBase, options: AccountLinksOptions, request: LinkOfUser): Promise<MailLink> {
  const { type: purpose, userId, email, newEmail, redirectTo, signUp } = request;
  if (purpose !== "email_change_current" && purpose !== "email_change_new") {
    return makeMailLink(client, options, { purpose, userId, email, redirectTo, signUp });
  }
  await beginEmailChange(client, options, { userId, email, newEmail, purpose });
  const to = purpose === "email_change_new" ? newEmail : email;
  return makeMailLink(client, options, { purpose, userId, email: to, newEmail, redirectTo });
}

type EmailChangeOfUser = Pick<LinkOfUser, "userId" | "email" | "newEmail"> & { readonly purpose: EmailChangeType };

/** With a secure change of address both sides must be confirmed, even if the administrator has requested one link only. */
async function beginEmailChange(
  client: pg.ClientBase,
  { codes, secureEmailChange }: AccountLinksOptions,
  { userId, email, newEmail, purpose }: EmailChangeOfUser,
): Promise<void> {
  const { rows } = await client.query<{ is_taken: boolean; pending: string | null }>(
    `select exists (select from auth.users where pg_catalog.lower(email) = pg_catalog.lower($2) and user_id <> $1) as is_taken,
      auth.pending_email($1) as pending`,
    [userId, newEmail],
  );
  if (rows[0]!.is_taken) throw emailTaken();
  if (rows[0]!.pending === newEmail) return;
  await client.query("select auth.cancel_email_change($1)", [userId]);
  if (!secureEmailChange) return;
  const isNew = purpose === "email_change_new";
  const other = isNew ? "email_change_current" : "email_change_new";
  await codes.add(client, { purpose: other, userId, to: isNew ? email : newEmail, newAddress: newEmail });
}

export function emailTaken(): ApiError {
  return new ApiError("conflict", "RESOURCE_CONFLICT", "A user with this e-mail address exists already.", {
    details: "email",
  });
}
