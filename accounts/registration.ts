import pg from "pg";
import { type AsOwner, inOwnerTransaction } from "#postgres/database";
import { ApiError, type FieldError } from "#runtime";
import type { AccountEmails } from "./email-links.ts";
import { CLIENT_INFO_SQL, type ClientInfo, clientInfoParameter } from "./identity/client-info.ts";
import { type OpenSignIn, PASSWORD_PROOF } from "./login.ts";
import type { SignUp } from "./one-time-codes.ts";
import { confirmAddress } from "./own-account.ts";
import { findPasswordFaults, type PasswordPolicy, passwordRejected } from "./password-policy.ts";
import type { Passwords } from "./passwords.ts";

export type NewAccount = {
  readonly name: string;
  readonly email: string;
  /** The default is the e-mail address. */
  readonly username?: string | null | undefined;
  readonly age?: number | null | undefined;
  /** Null for an account without a password. */
  readonly password: string | null;
  /** The user metadata, which triggers on the insert of the account see. The default is the name, if no table of users has it. */
  readonly metadata?: Readonly<Record<string, unknown>>;
  /** The address of an anonymous account is kept only if each row of a table of users has one. */
  readonly isAnonymous?: boolean;
};

/** The row of the table of users, or the id, name and address of an account without one. */
type UserRow = Readonly<Record<string, unknown>> & { readonly id: number };

type Register = <T>(account: NewAccount, clientInfo: ClientInfo, open: OpenSignIn<T>) => Promise<Registered<T>>;
type Registered<T> = { readonly user: UserRow; readonly opened: T };

/** `registered` is null if the address or the number is taken; its proof may still confirm the sign-up. */
type SignUpResult<T> = { readonly signUp: SignUp; readonly registered: Registered<T> | null };

export type Registration = {
  /**
   * Also sends an e-mail to verify the address, if this deployment sends e-mails, even if the address is taken but not
   * proved. In that case the account gets the password of the sign-up whose link is opened.
   */
  readonly register: Register;
  /** Creates the account without sending an e-mail. */
  readonly createAccount: Register;
  /** Signs up without sending an e-mail. */
  signUp<T>(account: NewAccount, clientInfo: ClientInfo, open: OpenSignIn<T>): Promise<SignUpResult<T>>;
  /** Returns all faults of the fields that are present. */
  findRegistrationFaults(account: Partial<NewAccount>): Promise<readonly FieldError[]>;
};

type RegistrationOptions = {
  readonly asOwner: AsOwner;
  readonly passwords: Passwords;
  readonly policy: PasswordPolicy;
  readonly emails: AccountEmails | null;
  /** True if addresses count as proved without an e-mail. */
  readonly autoConfirm: boolean;
};

export function makeRegistration({
  asOwner,
  passwords,
  policy,
  emails,
  autoConfirm,
}: RegistrationOptions): Registration {
  const passwordFaultsOf = ({ name, email, username, password }: Partial<NewAccount>): readonly FieldError[] =>
    password ? findPasswordFaults(password, { policy, field: "password", personalWords: [name, email, username] }) : [];

  const findFaults = async (account: Partial<NewAccount>): Promise<readonly FieldError[]> => {
    const accountFaults = await asOwner((client) => findAccountFaults(client, account));
    return [...accountFaults, ...passwordFaultsOf(account)];
  };

  const hashPassword = async (account: NewAccount, clientInfo: ClientInfo): Promise<string | null> => {
    // The password is checked before it is hashed, because hashing is expensive.
    const passwordFaults = passwordFaultsOf(account);
    if (passwordFaults.length > 0) {
      const faults = await findFaults(account);
      throw faults.length > passwordFaults.length ? validationError(faults) : passwordRejected(passwordFaults);
    }
    return account.password === null
      ? null
      : passwords.hash(account.password, { ...clientInfo, account: account.email });
  };

  const insert = <T>(
    account: NewAccount,
    hash: string | null,
    clientInfo: ClientInfo,
    open: OpenSignIn<T>,
  ): Promise<Registered<T>> =>
    inOwnerTransaction(asOwner, async (client) => {
      const user = await insertAccount(client, account, hash, clientInfo);
      if (autoConfirm) await confirmAddress(client, String(user.id));
      return { user, opened: await open(client, String(user.id), clientInfo, PASSWORD_PROOF) };
    }).catch(async (error) => {
      if (!(error instanceof pg.DatabaseError) || error.code !== INVALID_VALUE) throw error;
      const faults = await findFaults(account);
      throw faults.length > 1 ? validationError(faults) : error;
    });

  return {
    findRegistrationFaults: findFaults,
    createAccount: async (account, clientInfo, open) =>
      insert(account, await hashPassword(account, clientInfo), clientInfo, open),
    async register(account, clientInfo, open) {
      const hash = await hashPassword(account, clientInfo);
      try {
        const registered = await insert(account, hash, clientInfo, open);
        emails?.sendVerification(String(registered.user.id), clientInfo);
        return registered;
      } catch (error) {
        if (isTaken(error)) emails?.sendSignUp(account.email, signUpOf(account, hash), clientInfo);
        throw error;
      }
    },
    async signUp(account, clientInfo, open) {
      const hash = await hashPassword(account, clientInfo);
      const signUp = signUpOf(account, hash);
      try {
        return { signUp, registered: await insert(account, hash, clientInfo, open) };
      } catch (error) {
        if (isTaken(error)) return { signUp, registered: null };
        throw error;
      }
    },
  };
}

function signUpOf({ name, metadata }: NewAccount, passwordHash: string | null): SignUp {
  return { name, passwordHash, metadata: metadata ?? null };
}

function isTaken(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === "TAKEN";
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
  return new ApiError("invalid", "VALIDATION_ERROR", message, { details });
}

async function insertAccount(
  client: pg.ClientBase,
  { name, email, age, username, metadata, isAnonymous = false }: NewAccount,
  hash: string | null,
  clientInfo: ClientInfo,
): Promise<UserRow> {
  const { rows } = await client.query<{ row: UserRow }>(
    `select auth.sign_up($2, $3, $4, $5, $6, ${CLIENT_INFO_SQL}, $7, $8) as row`,
    [
      clientInfoParameter(clientInfo),
      name,
      email,
      age ?? null,
      username || null,
      hash,
      metadata === undefined ? null : JSON.stringify(metadata),
      isAnonymous,
    ],
  );
  return rows[0]!.row;
}
