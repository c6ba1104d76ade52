import pg from "pg";
import { type AsOwner, inTransaction } from "../database/as-owner.ts";
import { checkNewPassword, type PasswordPolicy } from "./password-policy.ts";
import { makePasswords } from "./passwords.ts";
import { OPERATOR, SENDER, senderValue } from "./sender.ts";

type Member = { readonly name: string; readonly email: string; readonly password: string; readonly role: string };
type Options = { readonly asOwner: AsOwner; readonly policy: PasswordPolicy };

export type Administration = {
  /** A user who can sign in, with an address that the operator vouches for. */
  add(member: Member): Promise<{ readonly id: string }>;
  disable(name: string): Promise<void>;
  enable(name: string): Promise<void>;
  assignRole(name: string, role: string): Promise<void>;
  /** The first administrator; none when there is one already. */
  ensureAdministrator(given: Pick<Member, "email" | "password">): Promise<"made" | "kept">;
};

const ADMINISTRATOR = "Administrator";

/** What those do who run the service. */
export function makeAdministration({ asOwner, policy }: Options): Administration {
  const passwords = makePasswords();

  const hashOf = ({ name, email, password }: Omit<Member, "role">): Promise<string> => {
    checkNewPassword(password, { policy, field: "password", known: [name, email] });
    return passwords.hash(password);
  };

  const call = async <T>(statement: string, ...values: unknown[]): Promise<T> => {
    const { rows } = await inTransaction(asOwner, (client) =>
      client.query<{ value: T }>(`select ${statement} as value`, [senderValue(OPERATOR), ...values]),
    );
    return rows[0]!.value;
  };

  const idOf = async (name: string): Promise<string> => {
    const { rows } = await asOwner((client) =>
      client.query<{ id: string | null }>("select (auth.find_account($1)).user_id as id", [name]),
    );
    const { id } = rows[0]!;
    if (id === null) throw new Error(`Nobody signs in as "${name}".`);
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
      const hash = await hashOf(member);
      return { id: await call(`auth.add_account($2, $3, $4, $5, ${SENDER})`, name, email, role, hash) };
    },
    async disable(name) {
      await call(`auth.disable_account($2, ${SENDER})`, await idOf(name));
    },
    async enable(name) {
      await call(`auth.enable_account($2, ${SENDER})`, await idOf(name));
    },
    async assignRole(name, role) {
      await call(`auth.assign_role($2, $3, ${SENDER})`, await idOf(name), role);
    },
    async ensureAdministrator({ email, password }) {
      if (await hasAdministrator()) return "kept";
      const hash = await hashOf({ name: ADMINISTRATOR, email, password });
      const isMade = await call<boolean>(
        `auth.ensure_administrator($2, $3, $4, ${SENDER})`,
        ADMINISTRATOR,
        email,
        hash,
      ).catch(explainTaken);
      return isMade ? "made" : "kept";
    },
  };
}

/** Its password is somebody's who may not be meant: nobody becomes an administrator by having registered first. */
function explainTaken(error: unknown): never {
  if (!(error instanceof pg.DatabaseError && error.code === "TAKEN")) throw error;
  throw new Error(
    "ADMIN_EMAIL has an account already, which is no administrator's. If it is yours: npm run user -- role <e-mail> admin",
  );
}
