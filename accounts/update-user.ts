import type pg from "pg";
import { type AsOwner, inOwnerTransaction } from "#postgres/database";
import type { CodeEmails, CodeRequest } from "./code-emails.ts";
import { CLIENT_INFO_SQL, type ClientInfo, clientInfoParameter } from "./identity/client-info.ts";
import type { OneTimeCodes } from "./one-time-codes.ts";
import { setUserMetadata } from "./own-account.ts";
import { checkNewPassword, type PasswordPolicy } from "./password-policy.ts";
import type { Passwords } from "./passwords.ts";

/** The changes by a signed-in user without the current password; absent members stay as they are. */
export type UserChanges = {
  readonly metadata: object | null;
  readonly email: string | null;
  readonly password: string | null;
  /** A code that was sent to the user, for a new password. */
  readonly code: string | null;
};

type UpdatingUser = { readonly userId: string; readonly sessionId: string | null };

export type UpdateOutcome =
  | "updated"
  | "address_invalid"
  | "address_missing"
  | "address_taken"
  | "code_required"
  | "code_wrong"
  | "no_emails"
  | "same_password";

/**
 * Applies all changes or none. A new address takes effect when the links that are sent to it have confirmed it; a new
 * password ends all other sign-ins.
 */
export type UpdateUser = (
  user: UpdatingUser,
  changes: UserChanges,
  request: CodeRequest,
  clientInfo: ClientInfo,
) => Promise<UpdateOutcome>;

type UpdateUserOptions = {
  readonly asOwner: AsOwner;
  readonly passwords: Passwords;
  readonly policy: PasswordPolicy;
  readonly codes: OneTimeCodes;
  /** Null if this deployment sends no e-mails. */
  readonly codeEmails: CodeEmails | null;
  /** True if addresses count as confirmed without an e-mail. */
  readonly autoConfirm: boolean;
  /** True if a user who signed in more than a day ago needs a code for a new password. */
  readonly requiresCode: boolean;
};

type AccountRow = {
  readonly email: string | null;
  readonly password_hash: string | null;
  readonly is_anonymous: boolean;
  readonly verified_email: string | null;
  readonly is_recent: boolean;
  readonly metadata: Readonly<Record<string, unknown>>;
};

/** `is_recent` is false for the documented routes, whose tokens name no session, so that a code is required. */
const READ_ACCOUNT = `
  select auth.own_email(account.*) as email, account.password_hash, account.is_anonymous, account.raw_user_meta_data as metadata,
    account.verified_email,
    exists (
      select from auth.token_sessions as session
      where session.id = $2 and session.user_id = account.user_id and session.created_at > pg_catalog.now() - interval '1 day'
    ) as is_recent
  from auth.users as account where account.user_id = $1`;
const CHANGE_PASSWORD = `select auth.change_password($2, $3, ${CLIENT_INFO_SQL}, $4)`;
const SET_CONFIRMED_EMAIL = `select auth.set_confirmed_email($2, $3, ${CLIENT_INFO_SQL})`;
const CHECK_ADDRESS = `
  select exists (select from auth.account_faults(null, $1, null, null) as fault where fault.field = 'email') as is_invalid,
    exists (select from auth.users as account where pg_catalog.lower(account.email) = pg_catalog.lower($1) and account.user_id <> $2) as is_taken`;

class Refusal extends Error {
  readonly outcome: Exclude<UpdateOutcome, "updated">;

  constructor(outcome: Exclude<UpdateOutcome, "updated">) {
    super(outcome);
    this.outcome = outcome;
  }
}

export function makeUpdateUser(options: UpdateUserOptions): UpdateUser {
  const { asOwner } = options;
  return async (user, changes, request, clientInfo) => {
    try {
      await countEmailChange(options, user, changes);
      const passwordHash = await prepareNewPassword(options, user, changes, clientInfo);
      const sendEmails = await inOwnerTransaction(asOwner, async (client) => {
        await client.query("select auth.lock_account($1)", [user.userId]);
        if (changes.metadata) await setUserMetadata(client, user.userId, changes.metadata);
        if (passwordHash !== null) {
          await client.query(CHANGE_PASSWORD, [
            clientInfoParameter(clientInfo),
            user.userId,
            passwordHash,
            user.sessionId,
          ]);
        }
        return changes.email === null ? null : changeAddress(options, client, user, changes.email, request, clientInfo);
      });
      sendEmails?.();
      return "updated";
    } catch (error) {
      if (error instanceof Refusal) return error.outcome;
      throw error;
    }
  };
}

/** Counts by the new address, so that nobody can flood a mailbox, and by the user, whose current address receives an e-mail too. */
async function countEmailChange(
  { asOwner, codeEmails, autoConfirm }: UpdateUserOptions,
  { userId, sessionId }: UpdatingUser,
  { email: newEmail }: UserChanges,
): Promise<void> {
  if (newEmail === null || autoConfirm || !codeEmails) return;
  const { email } = await asOwner((client) => readAccount(client, userId, sessionId));
  if (email?.toLowerCase() === newEmail.toLowerCase()) return;
  await codeEmails.count("email_change", newEmail);
  await codeEmails.count("email_change", userId);
}

/** Returns the hash of the new password; null without one. */
async function prepareNewPassword(
  { asOwner, passwords, policy, codes, requiresCode }: UpdateUserOptions,
  { userId, sessionId }: UpdatingUser,
  { password, code, email: newEmail }: UserChanges,
  clientInfo: ClientInfo,
): Promise<string | null> {
  if (password === null) return null;
  const account = await asOwner((client) => readAccount(client, userId, sessionId));
  const { email, password_hash: current, is_anonymous: isAnonymous, is_recent: isRecent } = account;
  if (isAnonymous && newEmail === null) throw new Refusal("address_missing");
  checkNewPassword(password, { policy, field: "password", personalWords: [email] });
  if (requiresCode && !isRecent && !isAnonymous) {
    if (code === null) throw new Refusal("code_required");
    if (!(await codes.useReauthentication(userId, code, clientInfo))) throw new Refusal("code_wrong");
  }
  // An anonymous account proves nothing, because anybody can begin one.
  const requester = { ...clientInfo, account: userId, isKnown: !isAnonymous };
  if (current !== null && (await passwords.matches(current, password, requester))) throw new Refusal("same_password");
  return passwords.hash(password, requester);
}

/** Returns the function that sends the e-mails after the transaction; null if there are none to send. */
async function changeAddress(
  { codeEmails, autoConfirm }: UpdateUserOptions,
  client: pg.ClientBase,
  { userId, sessionId }: UpdatingUser,
  newEmail: string,
  request: CodeRequest,
  clientInfo: ClientInfo,
): Promise<(() => void) | null> {
  const {
    email,
    is_anonymous: isAnonymous,
    verified_email: verifiedEmail,
    metadata,
  } = await readAccount(client, userId, sessionId);
  if (email?.toLowerCase() === newEmail.toLowerCase()) return null;
  const { rows } = await client.query<{ is_invalid: boolean; is_taken: boolean }>(CHECK_ADDRESS, [newEmail, userId]);
  if (rows[0]!.is_invalid) throw new Refusal("address_invalid");
  if (rows[0]!.is_taken) throw new Refusal("address_taken");
  if (autoConfirm) {
    await client.query(SET_CONFIRMED_EMAIL, [clientInfoParameter(clientInfo), userId, newEmail]);
    return null;
  }
  if (!codeEmails) throw new Refusal("no_emails");
  const change = { userId, currentEmail: email, verifiedEmail: isAnonymous ? null : verifiedEmail, newEmail, metadata };
  return codeEmails.beginEmailChange(client, change, request);
}

async function readAccount(client: pg.ClientBase, userId: string, sessionId: string | null): Promise<AccountRow> {
  const { rows } = await client.query<AccountRow>(READ_ACCOUNT, [userId, sessionId]);
  return rows[0]!;
}
