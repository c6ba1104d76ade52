import pg from "pg";
import { type AsOwner, inOwnerTransaction } from "../database/owner-pool.ts";
import { ApiError, type FieldError } from "../errors.ts";
import { CLIENT_INFO_SQL, type ClientInfo, clientInfoParameter } from "../identity/client-info.ts";
import type { AccountEmails } from "./email-links.ts";
import type { OpenSignIn } from "./login.ts";
import { checkNewPassword, findPasswordFaults, type PasswordPolicy } from "./password-policy.ts";
import type { Passwords } from "./passwords.ts";

export type NewAccount = {
  readonly name: string;
  readonly email: string;
  /** The default is the e-mail address. */
  readonly username?: string | null | undefined;
  readonly age?: number | null | undefined;
  readonly password: string;
};

/** The row of the users table. */
export type UserRow = Readonly<Record<string, unknown>> & { readonly id: number };

export type Register = <T>(
  account: NewAccount,
  clientInfo: ClientInfo,
  open: OpenSignIn<T>,
) => Promise<{ readonly user: UserRow; readonly opened: T }>;

/** Everything that is wrong with the fields that are there. */
export type FindRegistrationFaults = (account: Partial<NewAccount>) => Promise<readonly FieldError[]>;

type RegistrationOptions = {
  readonly asOwner: AsOwner;
  readonly passwords: Passwords;
  readonly policy: PasswordPolicy;
  readonly emails: AccountEmails | null;
};

export function makeRegister({ asOwner, passwords, policy, emails }: RegistrationOptions): Register {
  return async (account, clientInfo, open) => {
    const { name, email, username, password } = account;
    const personalWords = [name, email, username];
    const passwordFaults = findPasswordFaults(password, { policy, field: "password", personalWords });
    if (passwordFaults.length > 0) {
      const others = await asOwner((client) => findAccountFaults(client, account));
      if (others.length > 0) throw validationError([...others, ...passwordFaults]);
      checkNewPassword(password, { policy, field: "password", personalWords });
    }
    const hash = await passwords.hash(password);
    const registered = await inOwnerTransaction(asOwner, async (client) => {
      const user = await insertAccount(client, account, hash, clientInfo);
      return { user, opened: await open(client, String(user.id), clientInfo) };
    }).catch(async (error) => {
      if (!(error instanceof pg.DatabaseError) || error.code !== INVALID_VALUE) throw error;
      const faults = await asOwner((client) => findAccountFaults(client, account));
      throw faults.length > 1 ? validationError(faults) : error;
    });
    emails?.sendVerification(String(registered.user.id), clientInfo);
    return registered;
  };
}

export function makeFindRegistrationFaults({
  asOwner,
  policy,
}: Pick<RegistrationOptions, "asOwner" | "policy">): FindRegistrationFaults {
  return async (account) => {
    const { name, email, username, password } = account;
    const personalWords = [name, email, username];
    const accountFaults = await asOwner((client) => findAccountFaults(client, account));
    if (!password) return accountFaults;
    return [...accountFaults, ...findPasswordFaults(password, { policy, field: "password", personalWords })];
  };
}

/** The SQLSTATE for an invalid value; Postgres reports only the first one (see db/README.md). */
const INVALID_VALUE = "WRONG";

async function findAccountFaults(
  client: pg.ClientBase,
  { name, email, age, username }: Partial<NewAccount>,
): Promise<readonly FieldError[]> {
  const { rows } = await client.query<FieldError>("select field, message from auth.account_faults($1, $2, $3, $4)", [
    name ?? null,
    email ?? null,
    age ?? null,
    username || null,
  ]);
  return rows;
}

/** Some error formats contain only the message, so it lists all faults. */
function validationError(details: readonly FieldError[]): ApiError {
  const message = details.map((fault) => `${fault.field}: ${fault.message}`).join(" ");
  return new ApiError(400, "VALIDATION_ERROR", message, { details });
}

async function insertAccount(
  client: pg.ClientBase,
  { name, email, age, username }: NewAccount,
  hash: string,
  clientInfo: ClientInfo,
): Promise<UserRow> {
  const { rows } = await client.query<{ row: UserRow }>(
    `select to_jsonb(auth.register($2, $3, $4, $5, $6, ${CLIENT_INFO_SQL})) as row`,
    [clientInfoParameter(clientInfo), name, email, age ?? null, username || null, hash],
  );
  return rows[0]!.row;
}
