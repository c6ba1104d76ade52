import pg from "pg";
import { type AsOwner, inOwnerTransaction } from "#postgres/database";
import { insertUser } from "./administration.ts";
import { OPERATOR } from "./identity/client-info.ts";

/** Nobody can sign in as this user: it has no password, and no e-mail reaches its address. */
const PLAYGROUND_USER = {
  name: "Playground user",
  email: "user@playground.localhost",
  user_metadata: { name: "Playground user" },
};

const FIND_USER = "select user_id from auth.users where pg_catalog.lower(email) = $1 and deleted_at is null";

/** Returns the key of the user that Studio acts as on a playground, and creates the user if there is none. */
export async function ensurePlaygroundUser(asOwner: AsOwner): Promise<string> {
  const found = await findPlaygroundUser(asOwner);
  if (found !== null) return found;
  try {
    return await inOwnerTransaction(asOwner, (client) => insertUser(client, PLAYGROUND_USER, null, OPERATOR));
  } catch (error) {
    // Another page or process has created it meanwhile.
    const created = error instanceof pg.DatabaseError && error.code === "TAKEN" && (await findPlaygroundUser(asOwner));
    if (!created) throw error;
    return created;
  }
}

async function findPlaygroundUser(asOwner: AsOwner): Promise<string | null> {
  const { rows } = await asOwner((client) => client.query<{ user_id: string }>(FIND_USER, [PLAYGROUND_USER.email]));
  return rows[0]?.user_id ?? null;
}
