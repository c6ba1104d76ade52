import { randomUUID } from "node:crypto";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { generate } from "otplib";
import pg from "pg";
import { pino } from "pino";
import type { Service } from "../../../service/wiring/service.ts";
import { cloneDatabase, type DatabaseTemplate, type TestDatabase } from "../../database.ts";
import { newAddress } from "../../new-address.ts";
import { serve } from "../../serve.ts";

export const PASSWORD = "Tangerine-Boat-7";

export type TestResponse = {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: what an answer holds is what its test says.
  readonly body: any;
};

export type Sent = {
  readonly token?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  /** The address that a proxy says the request came from. */
  readonly from?: string;
  readonly method?: string;
};

/** Two gateways on one database, "one" and "two". They share nothing else. */
export type Gateways = {
  readonly one: Service;
  readonly two: Service;
  readonly database: TestDatabase;
  readonly owner: pg.Pool;
  /** The folder in which both write their mails. */
  readonly mailDir: string;
  /** Returns the logs of both, at the most detailed level. */
  logged(): string;
  /** The link in the last mail to somebody about that. */
  linkIn(mail: { readonly to: string; readonly about: string }): Promise<URL>;
  /** The text of the last mail to somebody about that. */
  mailTo(mail: { readonly to: string; readonly about: string }): Promise<string>;
  post(url: string, body?: unknown, sent?: Sent): Promise<TestResponse>;
  get(url: string, sent?: Sent): Promise<TestResponse>;
  close(): Promise<void>;
};

type Options = { readonly template?: DatabaseTemplate; readonly settings?: NodeJS.ProcessEnv };

export async function openGateways({ template, settings = {} }: Options = {}): Promise<Gateways> {
  const database = await cloneDatabase(template);
  const owner = new pg.Pool({ connectionString: database.ownerUrl, max: 3 });
  owner.on("error", () => {});
  const mailDir = await mkdtemp(join(tmpdir(), "mail-"));
  const lines: string[] = [];
  const sink = new Writable({
    write(chunk, _encoding, done) {
      lines.push(String(chunk));
      done();
    },
  });
  const own = {
    BASE_SCHEMA: template === "platform" ? "platform" : "content",
    RATE_LIMIT: "6000",
    TRUST_PROXY: "loopback",
    MAIL_DIR: mailDir,
  };
  const start = () => serve(database, { ...own, ...settings }, { log: pino({ level: "trace" }, sink) });
  const one = await start();
  const two = await start();

  const ask = async (url: string, { token, headers, from = newAddress(), method }: Sent, body?: unknown) => {
    const response = await fetch(url, {
      method: method ?? "GET",
      headers: {
        "X-Forwarded-For": from,
        ...(body !== undefined && { "Content-Type": "application/json" }),
        ...(token !== undefined && { Authorization: `Bearer ${token}` }),
        ...headers,
      },
      ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    const isJson = response.headers.get("content-type")?.startsWith("application/json");
    return { status: response.status, headers: response.headers, text, body: isJson ? JSON.parse(text) : null };
  };

  return {
    one,
    two,
    database,
    owner,
    mailDir,
    logged: () => lines.join(""),
    linkIn: async (mail) => new URL(/^https?:\S+$/m.exec(await arrived(mailDir, mail))![0]),
    mailTo: (mail) => arrived(mailDir, mail),
    post: (url, body, sent = {}) => ask(url, { method: "POST", ...sent }, body),
    get: (url, sent = {}) => ask(url, sent),
    async close() {
      await Promise.all([one.stop(), two.stop()]);
      await owner.end();
      await database.drop();
      await rm(mailDir, { recursive: true, force: true });
    },
  };
}

async function arrived(
  folder: string,
  { to, about }: { readonly to: string; readonly about: string },
): Promise<string> {
  for (;;) {
    const names = (await readdir(folder)).sort().reverse();
    for (const name of names) {
      const mail = await readFile(join(folder, name), "utf8");
      if (mail.includes(`To: ${to}\r\n`) && mail.includes(`Subject: ${about}\r\n`)) return mail;
    }
    await sleep(20);
  }
}

export type Person = { readonly email: string; readonly userId: number; readonly pair: Pair };
export type Pair = { readonly accessToken: string; readonly refreshToken: string };

/** Creates somebody who can sign in with PASSWORD, and has. */
export async function newPerson({ one, post }: Gateways): Promise<Person> {
  const email = `${randomUUID()}@example.org`;
  const { body } = await post(`${one.url}/auth/register`, { name: "Ada", email, password: PASSWORD });
  return { email, userId: body.user.id, pair: body };
}

/** Signs somebody in to a session, and returns the headers of a browser. */
export async function newSession({ one, post, get }: Gateways, email: string, code?: string) {
  const login = await post(`${one.url}/api/auth/login`, { username: email, password: PASSWORD, code });
  const Cookie = cookieOf(login)!;
  const { csrfToken } = (await get(`${one.url}/csrf-token`, { headers: { Cookie } })).body;
  return { Cookie, "X-CSRF-Token": csrfToken as string };
}

/** `SESSION=…`, as the browser would send it back. */
export function cookieOf({ headers }: TestResponse): string | null {
  return headers.get("set-cookie")?.split(";", 1)[0] ?? null;
}

/** Enrols an authenticator app. */
export async function newFactor({ one, post }: Gateways, token: string) {
  const { body } = await post(`${one.url}/api/mfa/enable`, undefined, { token });
  const code = await generate({ secret: body.secret });
  const verified = await post(`${one.url}/api/mfa/verify?code=${code}`, undefined, { token });
  return { secret: body.secret as string, code, backupCodes: verified.body.backupCodes as string[] };
}
