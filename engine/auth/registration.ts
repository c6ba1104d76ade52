import pg from "pg";
import { type AsOwner, inTransaction } from "../database/as-owner.ts";
import { ApiError, type FieldFault } from "../errors.ts";
import type { Letters } from "./letters.ts";
import type { Opening } from "./login.ts";
import { checkNewPassword, newPasswordFaults, type PasswordPolicy } from "./password-policy.ts";
import type { Passwords } from "./passwords.ts";
import { SENDER, type Sender, senderValue } from "./sender.ts";

export type NewAccount = {
  readonly name: string;
  readonly email: string;
  /** The e-mail address without one. */
  readonly username?: string | null | undefined;
  readonly age?: number | null | undefined;
  readonly password: string;
};

/** The user's row, as SQL has it. */
export type UserRow = Readonly<Record<string, unknown>> & { readonly id: number };

export type Register = <T>(
  account: NewAccount,
  sender: Sender,
  open: Opening<T>,
) => Promise<{ readonly user: UserRow; readonly opened: T }>;

type Options = {
  readonly asOwner: AsOwner;
  readonly passwords: Passwords;
  readonly policy: PasswordPolicy;
  readonly letters: Letters | null;
};

export function makeRegister({ asOwner, passwords, policy, letters }: Options): Register {
  return async (account, sender, open) => {
    const { name, email, username, password } = account;
    const known = [name, email, username];
    const passwordFaults = newPasswordFaults(password, { policy, field: "password", known });
    if (passwordFaults.length > 0) {
      const others = await asOwner((client) => accountFaults(client, account));
      if (others.length > 0) throw refusal([...others, ...passwordFaults]);
      checkNewPassword(password, { policy, field: "password", known });
    }
    const hash = await passwords.hash(password);
    const registered = await inTransaction(asOwner, async (client) => {
      const user = await register(client, account, hash, sender);
      return { user, opened: await open(client, String(user.id), sender) };
    }).catch(async (error) => {
      if (!(error instanceof pg.DatabaseError) || error.code !== UNACCEPTABLE) throw error;
      const faults = await asOwner((client) => accountFaults(client, account));
      throw faults.length > 1 ? refusal(faults) : error;
    });
    letters?.offerVerification(String(registered.user.id), sender);
    return registered;
  };
}

/** The code of a value that is not acceptable, of which SQL names one (see db/README.md). */
const UNACCEPTABLE = "WRONG";

async function accountFaults(
  client: pg.ClientBase,
  { name, email, age, username }: NewAccount,
): Promise<readonly FieldFault[]> {
  const { rows } = await client.query<FieldFault>("select field, message from auth.account_faults($1, $2, $3, $4)", [
    name,
    email,
    age ?? null,
    username || null,
  ]);
  return rows;
}

/** Some shapes of an error have its message alone: it says all. */
function refusal(details: readonly FieldFault[]): ApiError {
  const message = details.map((fault) => `${fault.field}: ${fault.message}`).join(" ");
  return new ApiError(400, "VALIDATION_ERROR", message, { details });
}

async function register(
  client: pg.ClientBase,
  { name, email, age, username }: NewAccount,
  hash: string,
  sender: Sender,
): Promise<UserRow> {
  const { rows } = await client.query<{ row: UserRow }>(
    `select to_jsonb(auth.register($2, $3, $4, $5, $6, ${SENDER})) as row`,
    [senderValue(sender), name, email, age ?? null, username || null, hash],
  );
  return rows[0]!.row;
}
