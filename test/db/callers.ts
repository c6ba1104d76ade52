import pg from "pg";

export type Role = "anon" | "authenticated" | "admin" | "service_role";

export type Caller = {
  readonly role: Role;
  /** The id of the user who is signed in. */
  readonly sub?: string;
  /** The interface that received the request. */
  readonly interface?: "table" | "resource" | "graphql" | "realtime";
  readonly usersAccess?: "open" | "owner";
};

export const anonymous: Caller = { role: "anon" };
export const alice: Caller = { role: "authenticated", sub: "1" };
export const bob: Caller = { role: "authenticated", sub: "2" };
/** Owns none of the seeded rows. */
export const admin: Caller = { role: "admin", sub: "3" };
export const service: Caller = { role: "service_role" };

/** Alice (1) and Bob (2) have an article each, of the same id and with a title in German. Both commented on Alice's. */
export const SEED = `
  insert into public.users (name, email) values
    ('Alice', 'alice@example.org'), ('Bob', 'bob@example.org'), ('Carol', 'carol@example.org');
  insert into public.articles (title, content, author_id, tags) values
    ('Alice writes', 'About gardens.', 1, '{garden,summer}'), ('Bob writes', 'About boats.', 2, '{boat,summer}');
  insert into public.article_translations (article_id, language, title) values
    (1, 'de', 'Alice schreibt'), (2, 'de', 'Bob schreibt');
  insert into public.comments (article_id, author_id, content) values (1, 1, 'My own.'), (1, 2, 'Nice.');
  insert into realtime.messages (topic, extension) values ('room', 'broadcast');
`;

export async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return client;
}

/** Does the work as the engine would have it done for that caller, and undoes it. */
export async function asCaller<T>(client: pg.ClientBase, caller: Caller, work: () => Promise<T>): Promise<T> {
  await client.query("begin");
  try {
    await become(client, caller);
    return await work();
  } finally {
    await client.query("rollback");
  }
}

/** Takes the caller's role and settings for the rest of the transaction. */
async function become(client: pg.ClientBase, caller: Caller): Promise<void> {
  const claims = { role: caller.role, ...(caller.sub && { sub: caller.sub }) };
  const settings = {
    role: caller.role,
    "request.jwt.claims": JSON.stringify(claims),
    "request.interface": caller.interface ?? "table",
    "app.users_access": caller.usersAccess ?? "open",
  };
  for (const [name, value] of Object.entries(settings)) {
    await client.query("select set_config($1, $2, true)", [name, value]);
  }
}

/** Runs the statement alone, as the caller, and undoes it: the rows that were affected, or the SQLSTATE of the refusal. */
export async function attempt(client: pg.ClientBase, caller: Caller, statement: string): Promise<number | string> {
  try {
    const result = await asCaller(client, caller, () => client.query(statement));
    return result.rowCount ?? 0;
  } catch (error) {
    if (error instanceof pg.DatabaseError && error.code) return error.code;
    throw error;
  }
}
