import pg from "pg";
import type { Config } from "../config/config.ts";
import { type AsOwner, inOwnerTransaction } from "../database/owner-pool.ts";
import { ApiError, fieldErrorsOf } from "../errors.ts";
import { CLIENT_INFO_SQL, clientInfoParameter, OPERATOR } from "../identity/client-info.ts";
import { checkNewPassword, type PasswordPolicy } from "./password-policy.ts";
import { makePasswords } from "./passwords.ts";

type NewUser = { readonly name: string; readonly email: string; readonly password: string; readonly role: string };
type AdministrationOptions = { readonly asOwner: AsOwner; readonly policy: PasswordPolicy };

const ADMINISTRATOR = "Administrator";

/** Account operations for the operator's commands. */
export class Administration {
  readonly #asOwner: AsOwner;
  readonly #policy: PasswordPolicy;
  readonly #passwords = makePasswords();

  constructor({ asOwner, policy }: AdministrationOptions) {
    this.#asOwner = asOwner;
    this.#policy = policy;
  }

  /** Adds a user with a verified e-mail address. */
  async add(user: NewUser): Promise<{ readonly id: string }> {
    const { name, email, role } = user;
    const hash = await this.#hashNewPassword(user);
    const id = await this.#call<string>(
      `auth.add_account($2, $3, $4, $5, ${CLIENT_INFO_SQL})`,
      name,
      email,
      role,
      hash,
    );
    return { id };
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
  async ensureAdministrator({ email, password }: Pick<NewUser, "email" | "password">): Promise<"made" | "kept"> {
    if (await this.#hasAdministrator()) return "kept";
    const hash = await this.#hashNewPassword({ name: ADMINISTRATOR, email, password });
    const statement = `auth.ensure_administrator($2, $3, $4, ${CLIENT_INFO_SQL})`;
    const isMade = await this.#call<boolean>(statement, ADMINISTRATOR, email, hash).catch(explainTakenEmail);
    return isMade ? "made" : "kept";
  }

  #hashNewPassword({ name, email, password }: Omit<NewUser, "role">): Promise<string> {
    checkNewPassword(password, { policy: this.#policy, field: "password", personalWords: [name, email] });
    return this.#passwords.hash(password);
  }

  async #call<T>(functionCall: string, ...values: unknown[]): Promise<T> {
    const { rows } = await inOwnerTransaction(this.#asOwner, (client) =>
      client.query<{ value: T }>(`select ${functionCall} as value`, [clientInfoParameter(OPERATOR), ...values]),
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
  const outcome = await new Administration({ asOwner, policy })
    .ensureAdministrator({ email, password })
    .catch(explainRefusal);
  return outcome === "made";
}

function explainRefusal(error: unknown): never {
  if (!(error instanceof ApiError)) throw error;
  throw new Error(["ADMIN_PASSWORD:", error.message, ...fieldErrorsOf(error).map((fault) => fault.message)].join(" "));
}
