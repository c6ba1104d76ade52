import pg from "pg";
import type { Config } from "#config";
import { type AsOwner, inOwnerTransaction } from "#postgres/database";
import { ApiError, commandLine } from "#runtime";
import { CLIENT_INFO_SQL, type ClientInfo, clientInfoParameter, OPERATOR } from "./identity/client-info.ts";
import { type AccountRows, type ImportReport, importAccounts } from "./import-accounts.ts";
import type { UserJson } from "./own-account.ts";
import { checkNewPassword, type PasswordPolicy } from "./password-policy.ts";
import { isPasswordHash, makePasswords, type Passwords } from "./passwords.ts";
import { isUuid } from "./random-secrets.ts";

type UserDetails = { readonly name: string; readonly email: string; readonly password: string; readonly role: string };

/** The changes by an administrator; a missing member stays as it is. */
export type AccountChanges = {
  readonly email?: string;
  readonly phone?: string;
  /** Confirms the address, without an e-mail. */
  readonly email_confirm?: true;
  readonly phone_confirm?: true;
  readonly role?: string;
  /** Members are added; null removes one. */
  readonly user_metadata?: object;
  readonly app_metadata?: object;
  /** The duration of a ban from now on; 0 ends a ban. */
  readonly ban_seconds?: number;
};

export type NewUserAccount = AccountChanges & { readonly id?: string; readonly name: string };

/** At most one of `password` and `passwordHash` is set. */
export type NewSecret = { readonly password: string | null; readonly passwordHash?: string | null };

export type UserPage = { readonly total: number; readonly users: readonly UserJson[] };
export type UserPageRequest = { readonly page: number; readonly perPage: number; readonly filter: string };

type AdministrationOptions = {
  readonly asOwner: AsOwner;
  readonly policy: PasswordPolicy;
  readonly passwords?: Passwords;
  /** The client that the audit log records. */
  readonly clientInfo?: ClientInfo;
};

const ADMINISTRATOR = "Administrator";
/** The digest of a session's cookie, in hex. */
const DIGEST_PATTERN = /^[\da-f]{64}$/;

/** $1 is a part of the address or the name. $2 is the same text as entered, which may be a whole id. */
const MATCHES_FILTER = `($1 = '' or account.email ilike '%' || $1 || '%' or account.raw_user_meta_data ->> 'full_name' ilike '%' || $1 || '%'
  or account.user_id::pg_catalog.text = $2 or account.id::pg_catalog.text = pg_catalog.lower($2))`;
const LIST_USERS = `
  select (select pg_catalog.count(*)::integer from auth.users as account where ${MATCHES_FILTER}) as total,
    (
      select coalesce(pg_catalog.jsonb_agg(auth.user_json(page.user_id) order by page.created_at desc, page.user_id desc), '[]')
      from (
        select account.user_id, account.created_at from auth.users as account where ${MATCHES_FILTER}
        order by account.created_at desc, account.user_id desc limit $3 offset $4
      ) as page
    ) as users`;

/** A sign-in that has not ended: the session of a browser, by cookie, or a family of refresh tokens. */
type AccountSession = {
  /** The digest of the cookie in hex, or the id of the family; neither is a credential. */
  readonly id: string;
  readonly kind: "browser" | "tokens";
  readonly user: { readonly id: string; readonly email: string | null; readonly username: string };
  readonly signed_in_at: string;
  readonly last_used_at: string;
  /** The time at which it ends if it is not used. */
  readonly expires_at: string;
  readonly address: string | null;
  readonly user_agent: string | null;
  /** The assurance level: 2 after a second factor; null for a browser. */
  readonly aal: number | null;
};

const MAX_SESSIONS = 200;
const LIST_SESSIONS = `
  select sessions.id, kind, pg_catalog.jsonb_build_object('id', account.id, 'email', account.email, 'username', account.username) as user,
    signed_in_at, last_used_at, expires_at, pg_catalog.host(address) as address, user_agent, aal
  from (
    select pg_catalog.encode(id_hash, 'hex') as id, 'browser' as kind, user_id, created_at as signed_in_at, last_used_at,
      least(idle_expires_at, expires_at) as expires_at, address, user_agent, null::smallint as aal
    from auth.sessions where least(idle_expires_at, expires_at) > pg_catalog.now() and ($1::bigint is null or user_id = $1)
    union all
    select token.family_id::pg_catalog.text, 'tokens', token.user_id, coalesce(token.signed_in_at, token.issued_at), token.issued_at,
      token.expires_at, token.address, token.user_agent, session.aal
    from auth.refresh_tokens as token left join auth.token_sessions as session on session.id = token.family_id
    where token.rotated_at is null and token.revoked_at is null and token.expires_at > pg_catalog.now()
      and ($1::bigint is null or token.user_id = $1)
  ) as sessions
  join auth.users as account using (user_id)
  order by last_used_at desc, sessions.id limit ${MAX_SESSIONS}`;
const FIND_BROWSER_SESSION = "select user_id from auth.sessions where id_hash = pg_catalog.decode($1, 'hex')";
const FIND_TOKEN_FAMILY =
  "select user_id from auth.refresh_tokens where family_id = $1::pg_catalog.uuid and revoked_at is null limit 1";

/** Account operations for administrators: the operator's commands, and servers with the role service_role. */
export class Administration {
  readonly #asOwner: AsOwner;
  readonly #policy: PasswordPolicy;
  readonly #passwords: Passwords;
  readonly #clientInfo: ClientInfo;

  constructor({ asOwner, policy, passwords = makePasswords(), clientInfo = OPERATOR }: AdministrationOptions) {
    this.#asOwner = asOwner;
    this.#policy = policy;
    this.#passwords = passwords;
    this.#clientInfo = clientInfo;
  }

  /** Lists the newest accounts first. */
  async list({ page, perPage, filter }: UserPageRequest): Promise<UserPage> {
    const { rows } = await this.#asOwner((client) =>
      client.query<UserPage>(LIST_USERS, [
        filter.replace(/[\\%_]/g, "\\$&"),
        filter.trim(),
        perPage,
        (page - 1) * perPage,
      ]),
    );
    return rows[0]!;
  }

  /** Returns the keys that identify these users in policies and rows: `{"<uuid>": "7"}`. */
  async findKeys(ids: readonly string[]): Promise<Readonly<Record<string, string>>> {
    const { rows } = await this.#asOwner((client) =>
      client.query<{ id: string; user_id: string }>("select id, user_id from auth.users where id = any ($1)", [ids]),
    );
    return Object.fromEntries(rows.map(({ id, user_id: key }) => [id, String(key)]));
  }

  /** Returns the key of the user with that uuid; null if there is none. */
  async findUser(id: string): Promise<string | null> {
    const { rows } = await this.#asOwner((client) =>
      client.query<{ user_id: string }>("select user_id from auth.users where id = $1", [id]),
    );
    return rows[0]?.user_id ?? null;
  }

  /** Returns null if the user was deleted meanwhile. */
  async readUser(userId: string): Promise<UserJson | null> {
    const { rows } = await this.#asOwner((client) =>
      client.query<{ user: UserJson | null }>("select auth.user_json($1) as user", [userId]),
    );
    return rows[0]!.user;
  }

  /** Returns the key. */
  async create(user: NewUserAccount, secret: NewSecret): Promise<string> {
    const hash = await this.#hashNewSecret(secret, [user.name, user.email]);
    return inOwnerTransaction(this.#asOwner, (client) => insertUser(client, user, hash, this.#clientInfo));
  }

  /** Returns false if there is no such account. */
  async change(userId: string, changes: AccountChanges, password: string | null): Promise<boolean> {
    const hash = await this.#hashNewSecret({ password }, [changes.email]);
    const statement = `auth.change_account($2, $3, $4, ${CLIENT_INFO_SQL})`;
    return this.#call<boolean>(statement, userId, JSON.stringify(changes), hash);
  }

  /** With `keepsRow` the row stays, without the values that identify the person. Returns false if there is no such account. */
  remove(userId: string, { keepsRow }: { readonly keepsRow: boolean }): Promise<boolean> {
    return this.#call<boolean>(`auth.delete_account($2, $3, ${CLIENT_INFO_SQL})`, userId, keepsRow);
  }

  /** Returns false if the user has no such factor. */
  deleteFactor(userId: string, factorId: string): Promise<boolean> {
    return this.#call<boolean>(`auth.delete_factor_of($2, $3, ${CLIENT_INFO_SQL})`, userId, factorId);
  }

  /** Lists the sessions of one user, or the most recently used ones of all users. */
  async listSessions(userId: string | null): Promise<readonly AccountSession[]> {
    const { rows } = await this.#asOwner((client) => client.query<AccountSession>(LIST_SESSIONS, [userId]));
    return rows;
  }

  /** Returns the key of the user who has the session; null if there is none. */
  async findSessionUser(sessionId: string): Promise<string | null> {
    const isBrowser = DIGEST_PATTERN.test(sessionId);
    if (!isBrowser && !isUuid(sessionId)) return null;
    const text = isBrowser ? FIND_BROWSER_SESSION : FIND_TOKEN_FAMILY;
    const { rows } = await this.#asOwner((client) => client.query<{ user_id: string }>(text, [sessionId]));
    return rows[0]?.user_id ?? null;
  }

  /** Ends a session of `listSessions`. */
  async endSession(userId: string, sessionId: string): Promise<void> {
    if (DIGEST_PATTERN.test(sessionId)) {
      await this.#call(`auth.close_session(pg_catalog.decode($2, 'hex'), ${CLIENT_INFO_SQL})`, sessionId);
    } else await this.#call(`auth.end_token_family($2, $3, ${CLIENT_INFO_SQL})`, userId, sessionId);
  }

  /** Signs the user out everywhere. */
  async endSessions(userId: string): Promise<void> {
    await this.#call(`auth.sign_out($2, null, 'global', ${CLIENT_INFO_SQL})`, userId);
  }

  async #hashNewSecret(
    { password, passwordHash = null }: NewSecret,
    personalWords: readonly (string | undefined)[],
  ): Promise<string | null> {
    if (passwordHash !== null && !isPasswordHash(passwordHash)) {
      throw new ApiError(
        "invalid",
        "VALIDATION_ERROR",
        "A password hash must be in the PHC format of argon2id, or of bcrypt.",
      );
    }
    if (password === null) return passwordHash;
    checkNewPassword(password, { policy: this.#policy, field: "password", personalWords });
    return this.#passwords.hash(password, { ...this.#clientInfo, isKnown: true });
  }

  /** Adds a user with a verified e-mail address. */
  async add(user: UserDetails): Promise<{ readonly id: string }> {
    const { name, email, role } = user;
    const hash = await this.#hashNewSecret(user, [name, email]);
    const id = await this.#call<string>(
      `auth.add_account($2, $3, $4, $5, ${CLIENT_INFO_SQL})`,
      name,
      email,
      role,
      hash,
    );
    return { id };
  }

  /** Imports accounts of another service, with their ids and password hashes. */
  import(rows: AccountRows): Promise<ImportReport> {
    return importAccounts(this.#asOwner, rows);
  }

  async disable(name: string): Promise<void> {
    await this.#call(`auth.disable_account($2, ${CLIENT_INFO_SQL})`, await this.#findUserId(name));
  }

  async enable(name: string): Promise<void> {
    await this.#call(`auth.enable_account($2, ${CLIENT_INFO_SQL})`, await this.#findUserId(name));
  }

  async assignRole(name: string, role: string): Promise<void> {
    await this.#call(`auth.assign_role($2, $3, ${CLIENT_INFO_SQL})`, await this.#findUserId(name), role);
  }

  /** Creates the first administrator, unless there is an administrator already. */
  async ensureAdministrator({ email, password }: Pick<UserDetails, "email" | "password">): Promise<"made" | "kept"> {
    if (await this.#hasAdministrator()) return "kept";
    const hash = await this.#hashNewSecret({ password }, [ADMINISTRATOR, email]);
    const statement = `auth.ensure_administrator($2, $3, $4, ${CLIENT_INFO_SQL})`;
    const isMade = await this.#call<boolean>(statement, ADMINISTRATOR, email, hash);
    return isMade ? "made" : "kept";
  }

  async #call<T>(functionCall: string, ...values: unknown[]): Promise<T> {
    const { rows } = await inOwnerTransaction(this.#asOwner, (client) =>
      client.query<{ value: T }>(`select ${functionCall} as value`, [clientInfoParameter(this.#clientInfo), ...values]),
    );
    return rows[0]!.value;
  }

  async #findUserId(name: string): Promise<string> {
    const { rows } = await this.#asOwner((client) =>
      client.query<{ id: string | null }>("select (auth.find_account($1)).user_id as id", [name]),
    );
    const { id } = rows[0]!;
    if (id === null) throw new Error(`User "${name}" not found.`);
    return id;
  }

  async #hasAdministrator(): Promise<boolean> {
    const { rows } = await this.#asOwner((client) =>
      client.query<{ has: boolean }>("select auth.has_administrator() as has"),
    );
    return rows[0]!.has;
  }
}

/** Returns the key. */
export async function insertUser(
  client: pg.ClientBase,
  user: NewUserAccount,
  passwordHash: string | null,
  clientInfo: ClientInfo,
): Promise<string> {
  const { rows } = await client.query<{ id: string }>(`select auth.create_account($2, $3, ${CLIENT_INFO_SQL}) as id`, [
    clientInfoParameter(clientInfo),
    JSON.stringify(user),
    passwordHash,
  ]);
  return rows[0]!.id;
}

type AdministratorSettings = Pick<Config, "adminEmail" | "adminPassword" | "passwordPolicy">;

/**
 * Creates the administrator of ADMIN_EMAIL, unless there is an administrator already. Returns true if it was created. An
 * existing account is not promoted, because anybody could have registered it with this address before: the error names the
 * command.
 */
export async function createFirstAdministrator(
  asOwner: AsOwner,
  { adminEmail: email, adminPassword: password, passwordPolicy: policy }: AdministratorSettings,
): Promise<boolean> {
  if (email === null || password === null) return false;
  const outcome = await new Administration({ asOwner, policy })
    .ensureAdministrator({ email, password })
    .catch(explainFailure);
  return outcome === "made";
}

function explainFailure(error: unknown): never {
  if (error instanceof pg.DatabaseError && error.code === "TAKEN") {
    throw new Error(
      `An account with ADMIN_EMAIL exists already and is not an administrator. If it is yours, run: ${commandLine("user", "role <e-mail> admin")}`,
    );
  }
  if (!(error instanceof ApiError)) throw error;
  throw new Error(`ADMIN_PASSWORD: ${error.message}`);
}
