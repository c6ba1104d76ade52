import type pg from "pg";
import { type AsOwner, inOwnerTransaction } from "#postgres/database";
import { ApiError } from "#runtime";
import { accountRequired } from "./auth-errors.ts";
import type { Claims } from "./identity/claims.ts";
import { CLIENT_INFO_SQL, type ClientInfo, clientInfoParameter } from "./identity/client-info.ts";
import { digestOf, isUuid } from "./random-secrets.ts";
import { readUserId } from "./user-id.ts";
import { signInOf } from "./validate-claims.ts";

/** The part of the own account that a user sees. */
export type AccountSummary = {
  readonly name: string;
  readonly email: string;
  readonly username: string;
  readonly role: string;
  readonly isVerified: boolean;
  readonly hasPassword: boolean;
  /** Null if there is no authenticator app. */
  readonly factorEnabledAt: Date | null;
  /** The number of unused backup codes. */
  readonly backupCodes: number;
};

/** A session of a browser, or a family of refresh tokens. */
export type SignIn = {
  /** Null for a session. */
  readonly familyId: string | null;
  readonly isCurrent: boolean;
  readonly signedInAt: Date;
  readonly lastUsedAt: Date;
  readonly address: string | null;
  readonly userAgent: string | null;
};

/** All sign-ins, the current one by tokens, or all others. */
export type SignOutScope = "global" | "local" | "others";

export type LinkedProvider = {
  readonly name: string;
  readonly title: string;
  readonly linkedAt: Date;
  readonly lastUsedAt: Date | null;
};

/** The user as clients of Supabase Auth read it, written by SQL. */
export type UserJson = Readonly<Record<string, unknown>> & {
  readonly id: string;
  /** Missing until an address or a number is confirmed. */
  readonly confirmed_at?: string;
  readonly is_anonymous: boolean;
  readonly identities: readonly { readonly provider: string }[];
};

type TokenSessionState = "live" | "ended" | "disabled";

const TOKEN_SESSION_STATE = `
  select case
    when auth.has_token_session($1, $2) then 'live'
    when exists (select from auth.users as account where account.user_id = $1 and auth.is_disabled(account.*)) then 'disabled'
    else 'ended' end as state`;

/** A new address; one of the two members is empty. */
type NewAddress = { readonly email: string; readonly phone: string };

/** The operations of users on their own accounts; each function concerns the rows of that user only. */
export type OwnAccount = {
  read(userId: string): Promise<AccountSummary>;
  readJson(userId: string): Promise<UserJson>;
  /** Returns the JSON of a new user who does not exist, for a sign-up that must not reveal whether there is an account. */
  imaginaryJson(address: NewAddress, metadata: Readonly<Record<string, unknown>>): Promise<UserJson>;
  rename(userId: string, name: string): Promise<void>;
  /** `session` is the id of the current session. */
  signIns(userId: string, session: string): Promise<SignIn[]>;
  endTokenFamily(userId: string, familyId: string, clientInfo: ClientInfo): Promise<void>;
  /** Ends all sign-ins except the session. */
  endOtherSignIns(userId: string, session: string, clientInfo: ClientInfo): Promise<void>;
  /** Returns `live` if the sign-in by tokens has not ended; `disabled` if it ended with the access of its account. */
  tokenSessionState(userId: string, sessionId: string): Promise<TokenSessionState>;
  /** True if the account of these claims has a second factor that their sign-in has not proved, or that names no sign-in. */
  lacksSecondFactor(claims: Claims): Promise<boolean>;
  /** `sessionId` is the id of the current sign-in by tokens. */
  signOut(userId: string, sessionId: string | null, scope: SignOutScope, clientInfo: ClientInfo): Promise<void>;
  /** Changes the given keys, and removes those that are null. */
  setUserMetadata(userId: string, metadata: Readonly<Record<string, unknown>>): Promise<void>;
  linkedProviders(userId: string): Promise<LinkedProvider[]>;
  /** Refuses to remove the only way to sign in. */
  unlinkProvider(userId: string, provider: string, clientInfo: ClientInfo): Promise<void>;
};

const READ_ACCOUNT = `
  select name, email, username, role, is_verified as "isVerified", has_password as "hasPassword",
    factor_enabled_at as "factorEnabledAt", backup_codes as "backupCodes"
  from auth.account_of($1)`;
/** Prints a new user like auth.user_json: Postgres defines the format of times and the order of keys. */
const IMAGINE_USER = `
  select pg_catalog.jsonb_build_object(
    'id', made.id, 'aud', 'authenticated', 'role', 'authenticated', 'email', $1::pg_catalog.text, 'phone', $2::pg_catalog.text,
    'created_at', pg_catalog.now(), 'updated_at', pg_catalog.clock_timestamp(), 'is_anonymous', false,
    'app_metadata', pg_catalog.jsonb_strip_nulls(pg_catalog.jsonb_build_object('provider', made.providers -> 0, 'providers', made.providers)),
    'user_metadata', auth.merge_metadata('{}', $3), 'factors', '[]'::pg_catalog.jsonb,
    'identities', case when $1 = '' then '[]'::pg_catalog.jsonb else pg_catalog.jsonb_build_array(pg_catalog.jsonb_build_object(
      'identity_id', pg_catalog.gen_random_uuid(), 'id', made.id, 'user_id', made.id,
      'identity_data', pg_catalog.jsonb_build_object('sub', made.id, 'email', $1::pg_catalog.text, 'email_verified', false, 'phone_verified', false),
      'provider', 'email', 'last_sign_in_at', null, 'created_at', pg_catalog.now(), 'updated_at', pg_catalog.now(), 'email', $1::pg_catalog.text
    )) end
  ) as user
  from (
    select pg_catalog.gen_random_uuid() as id, case when $1 = '' then '[]'::pg_catalog.jsonb else '["email"]' end as providers
  ) as made`;
const LIST_SIGN_INS = `
  select family_id as "familyId", is_current as "isCurrent", signed_in_at as "signedInAt", last_used_at as "lastUsedAt",
    pg_catalog.host(address) as address, user_agent as "userAgent"
  from auth.list_sign_ins($1, $2)`;
const LIST_PROVIDERS = `
  select name, title, linked_at as "linkedAt", last_used_at as "lastUsedAt" from auth.list_linked_providers($1)`;

export function makeOwnAccount(asOwner: AsOwner): OwnAccount {
  const callFor = async <T>(call: string, clientInfo: ClientInfo, ...values: readonly unknown[]): Promise<T> => {
    const { rows } = await inOwnerTransaction(asOwner, (client) =>
      client.query<{ value: T }>(`select ${call} as value`, [clientInfoParameter(clientInfo), ...values]),
    );
    return rows[0]!.value;
  };

  return {
    async read(userId) {
      const { rows } = await asOwner((client) => client.query<AccountSummary>(READ_ACCOUNT, [userId]));
      if (!rows[0]) throw accountRequired();
      return rows[0];
    },
    readJson: (userId) => asOwner((client) => readUserJson(client, userId)),
    async imaginaryJson({ email, phone }, metadata) {
      const values = [email, phone, JSON.stringify(metadata)];
      const { rows } = await asOwner((client) => client.query<{ user: UserJson }>(IMAGINE_USER, values));
      return rows[0]!.user;
    },
    async rename(userId, name) {
      await inOwnerTransaction(asOwner, (client) => client.query("select auth.rename_user($1, $2)", [userId, name]));
    },
    async signIns(userId, session) {
      const { rows } = await asOwner((client) => client.query<SignIn>(LIST_SIGN_INS, [userId, digestOf(session)]));
      return rows;
    },
    async endTokenFamily(userId, familyId, clientInfo) {
      const call = `auth.end_token_family($2, $3, ${CLIENT_INFO_SQL})`;
      const isEnded = isUuid(familyId) && (await callFor<boolean>(call, clientInfo, userId, familyId));
      if (!isEnded) throw gone("There is no such sign-in, or it has ended.");
    },
    async endOtherSignIns(userId, session, clientInfo) {
      await callFor(`auth.end_other_sign_ins($2, $3, ${CLIENT_INFO_SQL})`, clientInfo, userId, digestOf(session));
    },
    async tokenSessionState(userId, sessionId) {
      if (!isUuid(sessionId)) return "ended";
      const { rows } = await asOwner((client) =>
        client.query<{ state: TokenSessionState }>(TOKEN_SESSION_STATE, [userId, sessionId]),
      );
      return rows[0]!.state;
    },
    async lacksSecondFactor(claims) {
      const [userId, { sessionId, sessionDigest }] = [readUserId(claims), signInOf(claims)];
      // A session of a browser has proved it when it began. Only tokens that the service signs for administrators have a level without a sign-in.
      if (userId === null || sessionDigest !== null || (sessionId === null && claims.aal === "aal2")) return false;
      const { rows } = await asOwner((client) =>
        client.query<{ lacks: boolean }>("select auth.lacks_second_factor($1, $2) as lacks", [userId, sessionId]),
      );
      return rows[0]!.lacks;
    },
    async signOut(userId, sessionId, scope, clientInfo) {
      await callFor(`auth.sign_out($2, $3, $4, ${CLIENT_INFO_SQL})`, clientInfo, userId, sessionId, scope);
    },
    async setUserMetadata(userId, metadata) {
      await inOwnerTransaction(asOwner, (client) => setUserMetadata(client, userId, metadata));
    },
    async linkedProviders(userId) {
      const { rows } = await asOwner((client) => client.query<LinkedProvider>(LIST_PROVIDERS, [userId]));
      return rows;
    },
    async unlinkProvider(userId, provider, clientInfo) {
      const call = `auth.unlink_provider($2, $3, ${CLIENT_INFO_SQL})`;
      if (!(await callFor<boolean>(call, clientInfo, userId, provider))) throw gone("This provider is not linked.");
    },
  };
}

/** Throws if the user has no account here. */
export async function readUserJson(client: pg.ClientBase, userId: string): Promise<UserJson> {
  const { rows } = await client.query<{ user: UserJson | null }>("select auth.user_json($1) as user", [userId]);
  if (!rows[0]?.user) throw accountRequired();
  return rows[0].user;
}

/** Changes the given keys, and removes those that are null. */
export async function setUserMetadata(client: pg.ClientBase, userId: string, metadata: object): Promise<void> {
  await client.query("select auth.set_metadata($1, $2, null)", [userId, JSON.stringify(metadata)]);
}

/** Confirms the address of the user, if there is one, without an e-mail. */
export async function confirmAddress(client: pg.ClientBase, userId: string): Promise<void> {
  await client.query(
    `update auth.users as account set email_confirmed_at = pg_catalog.now()
     where account.user_id = $1 and auth.own_email(account.*) is not null`,
    [userId],
  );
}

/** True if the user has only a password, and has proved neither an address nor a number: /auth/v1 refuses sign-ins then. */
export function awaitsConfirmation(user: UserJson): boolean {
  const { confirmed_at: confirmedAt, is_anonymous: isAnonymous, identities } = user;
  return !confirmedAt && !isAnonymous && identities.every(({ provider }) => provider === "email");
}

function gone(message: string): ApiError {
  return new ApiError("notFound", "RESOURCE_NOT_FOUND", message);
}
