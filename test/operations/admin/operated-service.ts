import { request } from "node:http";
import { text } from "node:stream/consumers";
import pg from "pg";
import { pino } from "pino";
import { Administration } from "../../../accounts/administration.ts";
import { makeTokenKeys } from "../../../accounts/identity/token-keys.ts";
import { signToken } from "../../../accounts/identity/tokens.ts";
import type { Service } from "../../../service/wiring/service.ts";
import { cloneDatabase, type DatabaseTemplate, type TestDatabase } from "../../database.ts";
import { SECRET } from "../../secret.ts";
import { serve } from "../../serve.ts";

export const PASSWORD = "Tangerine-Boat-7";
export const ADMIN_EMAIL = "root@example.org";
export const USER_EMAIL = "ada@example.org";

type SentRequest = {
  readonly method?: string;
  readonly token?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
};

export type ReceivedResponse = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: what an answer holds is what its test says.
  readonly body: any;
};

/** A service with an administrator and a user. */
export type OperatedService = {
  readonly service: Service;
  readonly database: TestDatabase;
  readonly owner: pg.Pool;
  readonly adminId: string;
  readonly userId: string;
  /** Tokens of the administrator, of the user, and of programs. */
  readonly tokens: { readonly admin: string; readonly user: string; readonly service: string };
  /** Sends any headers, also those that fetch sets itself. */
  send(path: string, sent?: SentRequest): Promise<ReceivedResponse>;
  /** The cookie of a new session, and its CSRF token. */
  signIn(email: string): Promise<{ readonly cookie: string; readonly "x-csrf-token": string }>;
  /** The entries of the audit log about Studio. */
  events(): Promise<{ event: string; user_id: string | null; details: Record<string, unknown> }[]>;
  /** Returns everything that was logged. */
  logged(): string;
  close(): Promise<void>;
};

/** A token that the service accepts, also if the account was made in the same second. */
export function tokenFor(claims: object): string {
  const keys = makeTokenKeys({ jwtSecret: SECRET, jwtSecretIsBase64: false, jwtPrivateKey: null });
  return signToken(claims, keys, { timestamp: false });
}

export async function openOperatedService(
  settings: NodeJS.ProcessEnv = {},
  template: DatabaseTemplate = "content",
  prepare: (owner: pg.Pool) => Promise<void> = async () => {},
): Promise<OperatedService> {
  const database = await cloneDatabase(template);
  const owner = new pg.Pool({ connectionString: database.ownerUrl, max: 3 });
  owner.on("error", () => {});
  const accounts = template === "empty" ? { adminId: "1", userId: "2" } : await addAccounts(owner);
  await prepare(owner);
  const lines: string[] = [];
  const log = pino({ level: "trace" }, { write: (line: string) => void lines.push(line) });
  const service = await serve(
    database,
    { BASE_SCHEMA: template === "empty" ? "none" : template, ...settings },
    { log },
  );
  const send: OperatedService["send"] = (path, sent = {}) => sendRequest(new URL(path, service.url), sent);
  const { adminId, userId } = accounts;

  return {
    service,
    database,
    owner,
    ...accounts,
    tokens: {
      admin: tokenFor({ sub: adminId, role: "admin" }),
      user: tokenFor({ sub: userId, role: "authenticated" }),
      service: tokenFor({ role: "service_role" }),
    },
    send,
    async signIn(email) {
      const login = await send("/api/auth/login", { body: { username: email, password: PASSWORD } });
      const cookie = String(login.headers["set-cookie"]).split(";", 1)[0]!;
      const { csrfToken } = (await send("/csrf-token", { headers: { cookie } })).body;
      return { cookie, "x-csrf-token": csrfToken };
    },
    async events() {
      const { rows } = await owner.query(
        "select event, user_id, details from auth.audit_log where event like 'studio.%' order by id",
      );
      return rows;
    },
    logged: () => lines.join(""),
    async close() {
      await service.stop();
      await owner.end();
      await database.drop();
    },
  };
}

async function addAccounts(owner: pg.Pool) {
  const client = await owner.connect();
  try {
    const administration = new Administration({ asOwner: (work) => work(client), policy: "standard" });
    const root = { name: "Root", email: ADMIN_EMAIL, password: PASSWORD, role: "admin" };
    const ada = { name: "Ada", email: USER_EMAIL, password: PASSWORD, role: "authenticated" };
    const [{ id: adminId }, { id: userId }] = [await administration.add(root), await administration.add(ada)];
    return { adminId, userId };
  } finally {
    client.release();
  }
}

async function sendRequest(url: URL, { token, headers, body, ...sent }: SentRequest): Promise<ReceivedResponse> {
  const content = body === undefined ? null : JSON.stringify(body);
  const { promise, resolve, reject } = Promise.withResolvers<ReceivedResponse>();
  const outgoing = request(url, {
    method: sent.method ?? (content === null ? "GET" : "POST"),
    agent: false,
    headers: {
      ...(content !== null && { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(content) }),
      ...(token !== undefined && { Authorization: `Bearer ${token}` }),
      ...headers,
    },
  });
  outgoing.on("error", reject);
  outgoing.on("response", (response) => {
    text(response).then((received) => {
      const isJson = response.headers["content-type"]?.includes("json") === true && received !== "";
      const { statusCode: status = 0 } = response;
      resolve({ status, headers: response.headers, text: received, body: isJson ? JSON.parse(received) : null });
    }, reject);
  });
  outgoing.end(content ?? undefined);
  return promise;
}
