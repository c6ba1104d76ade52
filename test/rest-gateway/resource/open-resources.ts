import jwt from "jsonwebtoken";
import pg from "pg";
import type { Logger } from "../../../runtime/log/log.ts";
import type { Service } from "../../../service/wiring/service.ts";
import { cloneDatabase } from "../../database.ts";
import { SECRET } from "../../secret.ts";
import { serve } from "../../serve.ts";

export type TestResponse = {
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
  /** The URL for connections with the rights of the service. */
  readonly databaseUrl: string;
  ask(path: string, sent?: Sent): Promise<TestResponse>;
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
  readonly log?: Logger;
};

export async function openResources({ template, settings = {}, sql = "", log }: Options = {}): Promise<Resources> {
  const database = await cloneDatabase(template);
  const owner = new pg.Pool({ connectionString: database.ownerUrl, max: 4 });
  owner.on("error", () => {});
  if (sql !== "") await owner.query(sql);
  const service = await serve(database, settings, log && { log });

  const ask = async (path: string, { method = "GET", headers = {}, body, as }: Sent = {}): Promise<TestResponse> => {
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
    databaseUrl: database.url,
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
