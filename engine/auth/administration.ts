import pg from "pg";
import { type AsOwner, inTransaction } from "../database/as-owner.ts";
import { CLIENT_INFO_SQL, clientInfoParameter, OPERATOR } from "./client-info.ts";
import { checkNewPassword, type PasswordPolicy } from "./password-policy.ts";
import { makePasswords } from "./passwords.ts";

type NewMember = { readonly name: string; readonly email: string; readonly password: string; readonly role: string };
type Options = { readonly asOwner: AsOwner; readonly policy: PasswordPolicy };

export type Administration = {
  /** Adds a user with a verified e-mail address. */
  add(member: NewMember): Promise<{ readonly id: string }>;
  disable(name: string): Promise<void>;
  enable(name: string): Promise<void>;
  assignRole(name: string, role: string): Promise<void>;
  /** Creates the first administrator, unless there is an administrator already. */
  ensureAdministrator(given: Pick<NewMember, "email" | "password">): Promise<"made" | "kept">;
};

const ADMINISTRATOR = "Administrator";

/** Account operations for the operator's commands. */
export function makeAdministration({ asOwner, policy }: Options): Administration {
  const passwords = makePasswords();

  const hashNewPassword = ({ name, email, password }: Omit<NewMember, "role">): Promise<string> => {
    checkNewPassword(password, { policy, field: "password", personalWords: [name, email] });
    return passwords.hash(password);
  };

  const call = async <T>(statement: string, ...values: unknown[]): Promise<T> => {
    const { rows } = await inTransaction(asOwner, (client) =>
      client.query<{ value: T }>(`select ${statement} as value`, [clientInfoParameter(OPERATOR), ...values]),
    );
    return rows[0]!.value;
  };

  const idOf = async (name: string): Promise<string> => {
    const { rows } = await asOwner((client) =>
      client.query<{ id: string | null }>("select (auth.find_account($1)).user_id as id", [name]),
    );
    const { id } = rows[0]!;
    if (id === null) throw new Error(`User "${name}" not found.`);
    return id;
  };

  const hasAdministrator = async (): Promise<boolean> => {
    const { rows } = await asOwner((client) =>
      client.query<{ has: boolean }>("select auth.has_administrator() as has"),
    );
    return rows[0]!.has;
  };

  return {
    async add(member) {
      const { name, email, role } = member;
      const hash = await hashNewPassword(member);
      return { id: await call(`auth.add_account($2, $3, $4, $5, ${CLIENT_INFO_SQL})`, name, email, role, hash) };
    },
    async disable(name) {
      await call(`auth.disable_account($2, ${CLIENT_INFO_SQL})`, await idOf(name));
    },
    async enable(name) {
      await call(`auth.enable_account($2, ${CLIENT_INFO_SQL})`, await idOf(name));
    },
    async assignRole(name, role) {
      await call(`auth.assign_role($2, $3, ${CLIENT_INFO_SQL})`, await idOf(name), role);
    },
    async ensureAdministrator({ email, password }) {
      if (await hasAdministrator()) return "kept";
      const hash = await hashNewPassword({ name: ADMINISTRATOR, email, password });
      const isMade = await call<boolean>(
        `auth.ensure_administrator($2, $3, $4, ${CLIENT_INFO_SQL})`,
        ADMINISTRATOR,
        email,
        hash,
      ).catch(explainTakenEmail);
      return isMade ? "made" : "kept";
    },
  };
}

/** An existing account is not promoted: anybody could have registered it with this address before. */
function explainTakenEmail(error: unknown): never {
  if (!(error instanceof pg.DatabaseError && error.code === "TAKEN")) throw error;
  throw new Error(
    "An account with ADMIN_EMAIL exists already and is not an administrator. If it is yours, run: npm run user -- role <e-mail> admin",
  );
}
