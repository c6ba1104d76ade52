import { randomInt, randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import pg from "pg";
import { type Accounts, makeAccounts } from "../../../accounts/accounts.ts";
import { makeProviders } from "../../../accounts/federation/providers.ts";
import { makeTokenKeys } from "../../../accounts/identity/token-keys.ts";
import { makePasswords } from "../../../accounts/passwords.ts";
import type { Service } from "../../../service/wiring/service.ts";
import { CONFIG, lender } from "../../accounts/open-accounts.ts";
import { cloneDatabase } from "../../database.ts";
import { token } from "../../realtime/service.ts";
import type { Browser, PageView } from "../../rest-gateway/sign-in/browser.ts";
import { type Forger, openForger } from "../../rest-gateway/sign-in/forger.ts";
import { CLIENT, type OpenIdProvider, openOpenIdProvider } from "../../rest-gateway/sign-in/openid-provider.ts";
import { PROVIDER_CERTIFICATE, SERVICE_CERTIFICATE, SERVICE_KEY } from "../../rest-gateway/sign-in/saml-keys.ts";
import { ISSUER, openSamlProvider } from "../../rest-gateway/sign-in/saml-provider.ts";
import { SECRET } from "../../secret.ts";
import { serve } from "../../serve.ts";
import { until } from "../../until.ts";
import type { AddressKind } from "./ways.ts";

/** The address of the service that clients know. */
export const PUBLIC_URL = "https://service.example.org";
const ID_TOKEN_CLIENT = "application";
/** Costs are for attackers, not for the accounts that exist beforehand. */
const CHEAP_HASHES = { memory: 64, passes: 1, parallelism: 1 };

/** A message that a mailbox or a telephone has received: codes, and the token of the first link. */
export type Message = { readonly link: string; readonly token: string; readonly code: string };

/** A service with the settings of production, the providers that it knows, and the mailboxes and telephones of everybody. */
export type Site = {
  readonly service: Service;
  readonly owner: pg.Pool;
  /** Prepares accounts with all kinds of credentials, whatever the interfaces admit. */
  readonly accounts: Accounts;
  readonly openId: OpenIdProvider;
  /** Signs users in one after another, because the provider knows one user at a time. */
  signInWithSaml(browser: Browser, start: string, address: string): Promise<PageView>;
  readonly forger: Forger;
  readonly adminToken: string;
  messagesTo(address: string): Promise<readonly Message[]>;
  /** The messages once there are as many; the test that ends stops waiting. */
  receive(address: string, count: number, signal?: AbortSignal): Promise<readonly Message[]>;
  close(): Promise<void>;
};

export async function openSite(): Promise<Site> {
  const [database, mails, texts] = await Promise.all([cloneDatabase(), openMailFolder(), openTextGateway()]);
  const owner = new pg.Pool({ connectionString: database.ownerUrl, max: 4 });
  const service = await serve(database, {
    NODE_ENV: "production",
    USERS_ACCESS: "owner",
    AUTH_AUTOCONFIRM: "false",
    AUTH_ANONYMOUS_SIGN_INS: "true",
    AUTH_MANUAL_LINKING: "true",
    PUBLIC_URL,
    TRUST_PROXY: "loopback",
    MAIL_DIR: mails.path,
    MAIL_INTERVAL_SECONDS: "0",
    SMS_WEBHOOK_URL: `${texts.url}/texts`,
    SMS_WEBHOOK_SECRET: `v1,whsec_${Buffer.alloc(32, 7).toString("base64")}`,
  });
  const keys = makeTokenKeys({ jwtSecret: SECRET, jwtSecretIsBase64: false, jwtPrivateKey: null });
  const accounts = makeAccounts({
    asOwner: lender(owner),
    keys,
    config: CONFIG,
    passwords: makePasswords({ parameters: CHEAP_HASHES }),
    siteUrl: () => PUBLIC_URL,
  });
  const providers = await openProviders(owner, keys);
  let samlTurn: Promise<unknown> = Promise.resolve();
  const messagesTo = async (address: string) =>
    address.includes("@") ? mails.messagesTo(address) : texts.messagesTo(address);
  return {
    service,
    owner,
    accounts,
    ...providers,
    signInWithSaml(browser, start, address) {
      const turn = samlTurn.then(() => {
        providers.saml.user = { id: address, displayName: "N" };
        return providers.saml.signIn(browser, start);
      });
      samlTurn = turn.catch(() => {});
      return turn;
    },
    adminToken: token({ role: "service_role" }),
    messagesTo,
    async receive(address, count, signal) {
      await until(async () => {
        signal?.throwIfAborted();
        return (await messagesTo(address)).length >= count;
      });
      return messagesTo(address);
    },
    async close() {
      await service.stop();
      await owner.end();
      await Promise.all([providers.openId.close(), providers.saml.close(), providers.forger.close(), texts.close()]);
      await Promise.all([database.drop(), mails.remove()]);
    },
  };
}

async function openProviders(owner: pg.Pool, keys: ReturnType<typeof makeTokenKeys>) {
  const office = `${PUBLIC_URL}/auth/providers/office`;
  const [openId, saml, forger] = await Promise.all([
    openOpenIdProvider([PUBLIC_URL]),
    openSamlProvider({ callback: `${office}/callback`, signedOut: `${office}/signed-out` }),
    openForger(ID_TOKEN_CLIENT),
  ]);
  const providers = makeProviders(lender(owner), async () => keys);
  const usual = { title: null, secret: null, signUps: true, trustsEmail: false, trustsFactor: false, settings: {} };
  await providers.add({
    ...usual,
    name: "example",
    kind: "oidc",
    issuer: openId.issuer,
    clientId: CLIENT.id,
    secret: CLIENT.secret,
  });
  await providers.add({ ...usual, name: "forge", kind: "oidc", issuer: forger.issuer, clientId: ID_TOKEN_CLIENT });
  const settings = {
    entry_point: `${saml.origin}/sso`,
    certificates: [PROVIDER_CERTIFICATE],
    certificate: SERVICE_CERTIFICATE,
  };
  await providers.add({
    ...usual,
    name: "office",
    kind: "saml",
    issuer: ISSUER,
    clientId: null,
    secret: SERVICE_KEY,
    trustsEmail: true,
    settings,
  });
  return { openId, saml, forger };
}

/** A folder for MAIL_DIR. Each e-mail is read once, however often somebody looks. */
async function openMailFolder() {
  const path = await mkdtemp(join(tmpdir(), "mails-"));
  const received = new Map<string, Message[]>();
  const seen = new Set<string>();
  const read = async (): Promise<void> => {
    for (const name of (await readdir(path)).sort()) {
      if (seen.has(name) || !name.endsWith(".eml")) continue;
      const source = await readFile(join(path, name), "utf8");
      // It is being written.
      if (source === "") return;
      seen.add(name);
      const to = /^To: <?([^\s>]+)>?\r?$/m.exec(source)![1]!;
      received.set(to, [...(received.get(to) ?? []), toMessage(source)]);
    }
  };
  let reading: Promise<void> | null = null;
  return {
    path,
    async messagesTo(address: string): Promise<readonly Message[]> {
      reading ??= read().finally(() => {
        reading = null;
      });
      await reading;
      return received.get(address) ?? [];
    },
    remove: () => rm(path, { recursive: true }),
  };
}

function toMessage(source: string): Message {
  const body = source.slice(source.indexOf("\r\n\r\n"));
  const link = /https?:\/\/\S+[?&]token=\S+/.exec(body)?.[0] ?? "";
  return {
    link,
    token: link === "" ? "" : new URL(link).searchParams.get("token")!,
    code: /\b\d{6}\b/.exec(body.replaceAll(/\S*:\/\/\S*/g, ""))?.[0] ?? "",
  };
}

/** Receives text messages. */
async function openTextGateway() {
  const received: { readonly phone: string; readonly code: string }[] = [];
  const server = createServer(async (request, response) => {
    const { user, sms } = JSON.parse(await text(request));
    received.push({ phone: user.phone, code: sms.otp });
    response.end("{}");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    messagesTo: (phone: string): Message[] =>
      received.flatMap(({ phone: to, code }) => (to === phone ? [{ link: "", token: "", code }] : [])),
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** An address that nobody has; the provider has not verified those that begin with "unverified". */
export function newOwnAddress(kind: AddressKind, { isVouched = true } = {}): string {
  if (kind === "phone") return `1555${randomInt(1_000_000, 9_999_999)}`;
  return `${isVouched ? "person" : "unverified"}-${randomUUID()}@example.org`;
}
