import pg from "pg";
import { type Database, openDatabase } from "../../../postgres/database/database.ts";
import type { DatabaseOptions } from "../../../postgres/database/database-options.ts";
import type { StatementContext } from "../../../postgres/database/statement.ts";
import { cloneDatabase } from "../../database.ts";

export type OpenDatabase = AsyncDisposable & {
  readonly database: Database;
  /** A superuser beside it. */
  readonly owner: pg.Client;
  readonly url: string;
  readonly logged: string[];
};

/** Options of every database that this file of tests opens. */
export const commonOptions: { current: Partial<DatabaseOptions> } = { current: {} };

/** A database of one's own with this schema in it, and the engine's door to it. */
export async function open(schema = "", options: Partial<DatabaseOptions> = {}): Promise<OpenDatabase> {
  const { url, ownerUrl, drop } = await cloneDatabase("empty");
  const owner = new pg.Client({ connectionString: ownerUrl });
  await owner.connect();
  if (schema) await owner.query(schema);

  const logged: string[] = [];
  const log = {
    info: (_fields: object, message: string) => void logged.push(message),
    warn: (_fields: object, message: string) => void logged.push(message),
  };
  const database = openDatabase({ url, ownerUrl, log, ...commonOptions.current, ...options });
  const close = async () => {
    await database.close();
    await owner.end();
    await drop();
  };
  return { database, owner, url, logged, [Symbol.asyncDispose]: close };
}

export function caller(role: string, claims: object = {}): StatementContext {
  return { role, settings: [["request.jwt.claims", JSON.stringify({ role, ...claims })]] };
}

export const anon = caller("anon");
export const alice = caller("authenticated", { sub: "alice" });
export const bob = caller("authenticated", { sub: "bob" });

export function sql(text: string, ...values: (string | Buffer | null)[]) {
  return { text, values };
}

/** Asks for the session that answers; any caller may run it. */
export const PID = sql("select pg_backend_pid()::text");
