import jwt from "jsonwebtoken";
import pg from "pg";
import { pino } from "pino";
import { readConfig } from "../../../engine/config/config.ts";
import { type Service, startService } from "../../../service.ts";
import { cloneDatabase } from "../../database.ts";

const SECRET = "a secret that is long enough to sign with";

export type Told = {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: what an answer holds is what its test says.
  readonly body: any;
};

export type Sent = {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** An object goes as JSON. */
  readonly body?: unknown;
  /** The user who asks; nobody in particular where nothing is said. */
  readonly as?: number | { readonly sub?: string; readonly role: string };
};

/** A service on a database of its own. */
export type Resources = {
  readonly service: Service;
  readonly owner: pg.Pool;
  ask(path: string, sent?: Sent): Promise<Told>;
  /** Makes a user in SQL; the id. */
  addUser(name?: string): Promise<number>;
  /** Resolves when the catalogue has been read again. */
  seen(path: string): Promise<void>;
  close(): Promise<void>;
};

type Options = {
  readonly template?: "content" | "empty";
  readonly settings?: NodeJS.ProcessEnv;
  readonly sql?: string;
};

export async function openResources({ template, settings = {}, sql = "" }: Options = {}): Promise<Resources> {
  const database = await cloneDatabase(template);
  const owner = new pg.Pool({ connectionString: database.ownerUrl, max: 4 });
  owner.on("error", () => {});
  if (sql !== "") await owner.query(sql);
  const { config } = readConfig({
    PORT: "0",
    RATE_LIMIT: "0",
    DATABASE_URL: database.url,
    OWNER_DATABASE_URL: database.ownerUrl,
    JWT_SECRET: SECRET,
    ...settings,
  });
  const giveUp = (reason: Error) => {
    throw reason;
  };
  const service = await startService(config, { log: pino({ level: "silent" }), tell: () => {}, giveUp });

  const ask = async (path: string, { method = "GET", headers = {}, body, as }: Sent = {}): Promise<Told> => {
    const response = await fetch(service.url + path, {
      method,
      redirect: "manual",
      headers: {
        ...(body !== undefined && { "Content-Type": "application/json" }),
        ...(as !== undefined && { Authorization: `Bearer ${tokenOf(as)}` }),
        ...headers,
      },
      ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    const isJson = /json/.test(response.headers.get("content-type") ?? "") && text !== "";
    return { status: response.status, headers: response.headers, text, body: isJson ? JSON.parse(text) : null };
  };

  let users = 0;
  return {
    service,
    owner,
    ask,
    async addUser(name = "Ada") {
      const email = `user-${++users}@example.org`;
      const { rows } = await owner.query("insert into users (name, email) values ($1, $2) returning id", [name, email]);
      return Number(rows[0].id);
    },
    async seen(path) {
      while ((await ask(path)).status === 404);
    },
    async close() {
      await service.stop();
      await owner.end();
      await database.drop();
    },
  };
}

function tokenOf(as: NonNullable<Sent["as"]>): string {
  return jwt.sign(typeof as === "number" ? { sub: String(as), role: "authenticated" } : as, SECRET);
}
