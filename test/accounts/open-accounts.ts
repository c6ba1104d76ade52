import { randomUUID } from "node:crypto";
import pg from "pg";
import { type Accounts, makeAccounts } from "../../accounts/accounts.ts";
import type { ClientInfo } from "../../accounts/identity/client-info.ts";
import { makeTokenKeys } from "../../accounts/identity/token-keys.ts";
import { makePasswords } from "../../accounts/passwords.ts";
import type { AsOwner } from "../../postgres/database/owner-pool.ts";
import { cloneDatabase, type TestDatabase } from "../database.ts";
import { newAddress } from "../new-address.ts";

export const PASSWORD = "Tangerine-Boat-7";

export const KEYS = makeTokenKeys({
  jwtSecret: "a secret of more than thirty-two letters",
  jwtSecretIsBase64: false,
  jwtPrivateKey: null,
});
const SITE = "http://127.0.0.1:3000";
export const CONFIG = {
  jwtIssuer: "content-service",
  jwtAudience: null,
  jwtRoleClaim: ["role"],
  authSubject: null,
  passwordPolicy: "standard",
  autoConfirm: false,
  passwordReauthentication: true,
  signInRedirects: [],
  applicationUrl: null,
  webauthnRpId: null,
  webauthnOrigins: [],
  corsOrigins: "*",
} as const;

/** OWASP recommends more, which delays attackers and would delay tests. */
const CHEAP = { memory: 64, passes: 1, parallelism: 1 };

export type OpenAccounts = {
  readonly database: TestDatabase;
  /** The pool with which tests look at rows and change times. */
  readonly owner: pg.Pool;
  readonly asOwner: AsOwner;
  readonly accounts: Accounts;
  close(): Promise<void>;
} & AsyncDisposable;

/** Accounts as two gateways would have them: nothing is shared but the database. */
export async function openAccounts(
  config: Partial<Parameters<typeof makeAccounts>[0]["config"]> = {},
): Promise<OpenAccounts> {
  const database = await cloneDatabase();
  const owner = new pg.Pool({ connectionString: database.ownerUrl, max: 12 });
  owner.on("error", () => {});
  const asOwner = lender(owner);
  const passwords = makePasswords({ parameters: CHEAP });
  const close = async () => {
    await owner.end();
    await database.drop();
  };
  return {
    database,
    owner,
    asOwner,
    accounts: makeAccounts({ asOwner, keys: KEYS, config: { ...CONFIG, ...config }, passwords, siteUrl: () => SITE }),
    close,
    [Symbol.asyncDispose]: close,
  };
}

export function lender(pool: pg.Pool): AsOwner {
  return async (work) => {
    const client = await pool.connect();
    try {
      return await work(client);
    } finally {
      client.release(client.getTransactionStatus() !== "I");
    }
  };
}

export type Person = { readonly userId: string; readonly email: string; readonly username: string };

/** Creates a user who can sign in with PASSWORD. */
export async function newPerson({ accounts }: OpenAccounts, { username }: { username?: string } = {}): Promise<Person> {
  const email = newEmail();
  const account = { name: "Ada", email, username, password: PASSWORD };
  const { user } = await accounts.register(account, from(), accounts.readClaims);
  return { userId: String(user.id), email, username: username ?? email };
}

export function newEmail(): string {
  return `${randomUUID()}@example.org`;
}

/** Returns a client at an address of its own, so that tests do not throttle one another. */
export function from(address = newAddress()): ClientInfo {
  return { address, userAgent: "vitest", requestId: randomUUID() };
}

/** Returns the user's events in the audit log, oldest first. */
export async function eventsOf({ owner }: OpenAccounts, userId: string): Promise<string[]> {
  const { rows } = await owner.query<{ event: string }>(
    "select event from auth.audit_log where user_id = $1 order by id",
    [userId],
  );
  return rows.map(({ event }) => event);
}

export function claimsOf(token: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(token.split(".")[1]!, "base64url").toString());
}
