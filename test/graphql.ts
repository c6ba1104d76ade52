import jwt from "jsonwebtoken";
import pg from "pg";
import type { Logger } from "../runtime/log/log.ts";
import type { ServiceOptions } from "../service/wiring/running-service.ts";
import type { Service } from "../service/wiring/service.ts";
import { cloneDatabase, type TestDatabase } from "./database.ts";
import { SECRET } from "./secret.ts";
import { serve } from "./serve.ts";

export type TestResponse = {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: what an answer holds is what its test says.
  readonly data: any;
  // biome-ignore lint/suspicious/noExplicitAny: see above.
  readonly errors: any;
};

type TestRequest = {
  readonly variables?: Readonly<Record<string, unknown>>;
  readonly operationName?: string;
  readonly token?: string;
  readonly headers?: Readonly<Record<string, string>>;
};

export type GraphQLService = {
  readonly service: Service;
  readonly database: TestDatabase;
  /** `http://…/graphql` */
  readonly url: string;
  /** `ws://…/graphql` */
  readonly socketUrl: string;
  ask(query: string, request?: TestRequest): Promise<TestResponse>;
  /** Runs a statement as the owner of the database. */
  sql<Row extends pg.QueryResultRow>(text: string, values?: unknown[]): Promise<Row[]>;
  stop(): Promise<void>;
};

type Options = {
  readonly settings?: Readonly<Record<string, string>>;
  readonly template?: "content" | "empty";
  readonly log?: Logger;
  readonly options?: Partial<ServiceOptions>;
  /** A database that is there already and stays. */
  readonly database?: TestDatabase;
  /** Statements that the owner runs before the service starts. */
  readonly before?: string;
};

/** The whole service in this process, on a database and a port of its own. */
export async function serveGraphQL(options: Options = {}): Promise<GraphQLService> {
  const { settings = {}, template, log, options: replaced = {}, database, before } = options;
  const own = database ?? (await cloneDatabase(template));
  const owner = new pg.Client({ connectionString: own.ownerUrl });
  owner.on("error", () => {});
  await owner.connect();
  if (before) await owner.query(before);
  const service = await serve(own, { GRAPHQL_PRELOAD: "on", ...settings }, { ...replaced, ...(log && { log }) });
  const url = `${service.url}/graphql`;

  return {
    service,
    database: own,
    url,
    socketUrl: url.replace(/^http/, "ws"),
    ask: async (query, { variables, operationName, token, headers } = {}) => {
      const response = await fetch(url, {
        method: "POST",
        headers: {
          "Content-Type": "application/json",
          ...(token !== undefined && { Authorization: `Bearer ${token}` }),
          ...headers,
        },
        body: JSON.stringify({ query, variables, operationName }),
      });
      const { data, errors } = (await response.json()) as Pick<TestResponse, "data" | "errors">;
      return { status: response.status, headers: response.headers, data, errors };
    },
    sql: async (text, values) => (await owner.query(text, values)).rows,
    stop: async () => {
      await service.stop();
      await owner.end().catch(() => {});
      if (!database) await own.drop();
    },
  };
}

/** An access token, of a user unless it says otherwise, for an hour. */
export function tokenFor(user: number | string, claims: object = {}): string {
  const seconds = Math.floor(Date.now() / 1000);
  return jwt.sign({ sub: String(user), role: "authenticated", exp: seconds + 3600, ...claims }, SECRET);
}
