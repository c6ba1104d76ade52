import type pg from "pg";
import { type AsOwner, inTransaction } from "../database/as-owner.ts";
import type { Letters } from "./letters.ts";
import type { Opening } from "./login.ts";
import { checkNewPassword, type PasswordPolicy } from "./password-policy.ts";
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
    checkNewPassword(password, { policy, field: "password", known: [name, email, username] });
    const hash = await passwords.hash(password);
    const registered = await inTransaction(asOwner, async (client) => {
      const user = await register(client, account, hash, sender);
      return { user, opened: await open(client, String(user.id), sender) };
    });
    letters?.offerVerification(String(registered.user.id), sender);
    return registered;
  };
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
