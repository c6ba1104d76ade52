import pg from "pg";
import type { Config } from "../config/config.ts";
import { type AsOwner, inOwnerTransaction } from "../database/owner-pool.ts";
import { ApiError, fieldErrorsOf } from "../errors.ts";
import { CLIENT_INFO_SQL, clientInfoParameter, OPERATOR } from "../identity/client-info.ts";
import { checkNewPassword, type PasswordPolicy } from "./password-policy.ts";
import { makePasswords } from "./passwords.ts";

type NewUser = { readonly name: string; readonly email: string; readonly password: string; readonly role: string };
type AdministrationOptions = { readonly asOwner: AsOwner; readonly policy: PasswordPolicy };

export type Administration = {
  /** Adds a user with a verified e-mail address. */
  add(member: NewUser): Promise<{ readonly id: string }>;
  disable(name: string): Promise<void>;
  enable(name: string): Promise<void>;
  assignRole(name: string, role: string): Promise<void>;
  /** Creates the first administrator, unless there is an administrator already. */
  ensureAdministrator(given: Pick<NewUser, "email" | "password">): Promise<"made" | "kept">;
};

const ADMINISTRATOR = "Administrator";

/** Account operations for the operator's commands. */
export function makeAdministration({ asOwner, policy }: AdministrationOptions): Administration {
  const passwords = makePasswords();

  const hashNewPassword = ({ name, email, password }: Omit<NewUser, "role">): Promise<string> => {
    checkNewPassword(password, { policy, field: "password", personalWords: [name, email] });
    return passwords.hash(password);
  };

  const callFunction = async <T>(statement: string, ...values: unknown[]): Promise<T> => {
    const { rows } = await inOwnerTransaction(asOwner, (client) =>
      client.query<{ value: T }>(`select ${statement} as value`, [clientInfoParameter(OPERATOR), ...values]),
    );
    return rows[0]!.value;
  };

  const findUserId = async (name: string): Promise<string> => {
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
    async add(user) {
      const { name, email, role } = user;
      const hash = await hashNewPassword(user);
      return {
        id: await callFunction(`auth.add_account($2, $3, $4, $5, ${CLIENT_INFO_SQL})`, name, email, role, hash),
      };
    },
    async disable(name) {
      await callFunction(`auth.disable_account($2, ${CLIENT_INFO_SQL})`, await findUserId(name));
    },
    async enable(name) {
      await callFunction(`auth.enable_account($2, ${CLIENT_INFO_SQL})`, await findUserId(name));
    },
    async assignRole(name, role) {
      await callFunction(`auth.assign_role($2, $3, ${CLIENT_INFO_SQL})`, await findUserId(name), role);
    },
    async ensureAdministrator({ email, password }) {
      if (await hasAdministrator()) return "kept";
      const hash = await hashNewPassword({ name: ADMINISTRATOR, email, password });
      const isMade = await callFunction<boolean>(
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

type AdministratorSettings = Pick<Config, "adminEmail" | "adminPassword" | "passwordPolicy">;

/** Creates the administrator of ADMIN_EMAIL, unless there is an administrator already. True if it was created. */
export async function createFirstAdministrator(
  asOwner: AsOwner,
  { adminEmail: email, adminPassword: password, passwordPolicy: policy }: AdministratorSettings,
): Promise<boolean> {
  if (email === null || password === null) return false;
  const outcome = await makeAdministration({ asOwner, policy })
    .ensureAdministrator({ email, password })
    .catch(explainRefusal);
  return outcome === "made";
}

function explainRefusal(error: unknown): never {
  if (!(error instanceof ApiError)) throw error;
  throw new Error(["ADMIN_PASSWORD:", error.message, ...fieldErrorsOf(error).map((fault) => fault.message)].join(" "));
}
