import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import type { Server } from "node:https";
import { createServer, get } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { makeDiscovery } from "../../accounts/federation/oauth-protocol.ts";
import { RemoteKeySet } from "../../accounts/identity/remote-key-set.ts";
import { makeWebhookSender } from "../../jobs/webhooks/send-delivery.ts";
import { makeAuthority } from "../certificates.ts";
import { useFixture } from "../fixture.ts";
import { openRebindingResolver } from "./rebinding-resolver.ts";

const HOST = "rebind.example";
const PUBLIC = "1.1.1.1";
/** An attacker's name resolves to this after the check. */
const LOOPBACK = "127.0.0.1";

let server: Server;
let origin: string;
const requests: (string | undefined)[] = [];
const trusted = getCACertificates("default");

beforeAll(async () => {
  const folder = await mkdtemp(join(tmpdir(), "dns-rebinding-"));
  const authority = await makeAuthority(folder, "Test");
  const files = await authority.sign(HOST);
  const [ca, cert, key] = await Promise.all(
    [authority.certificate, files.certificate, files.key].map((file) => readFile(file, "utf8")),
  );
  await rm(folder, { recursive: true });
  setDefaultCACertificates([...trusted, ca!]);
  server = createServer({ cert: cert!, key: key! }, (request, response) => {
    requests.push(request.url);
    // A connection per request: the next one looks the name up again.
    response.writeHead(200, { "Content-Type": "application/json", Connection: "close" });
    response.end(JSON.stringify({ issuer: origin, jwks_uri: `${origin}/keys`, keys: [] }));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  origin = `https://${HOST}:${(server.address() as AddressInfo).port}`;
});
const resolver = useFixture(() => openRebindingResolver(PUBLIC, LOOPBACK));
afterAll(async () => {
  setDefaultCACertificates(trusted);
  server.closeAllConnections();
  server.close();
});
beforeEach(() => {
  resolver.reset();
  requests.length = 0;
});

type Requester = AsyncDisposable & {
  /** Resolves with true if it was answered. */
  send(): Promise<boolean>;
};

const SECRET = `whsec_${randomBytes(32).toString("base64")}`;
const quiet = { warn: () => {}, info: () => {} };
const withoutEnd = async () => {};

/** The requesters that connect to addresses which users or providers name. */
const REQUESTERS: Readonly<Record<string, () => Requester>> = {
  "a webhook": () => {
    const sender = makeWebhookSender({ network: "public" });
    const webhook = {
      id: "1",
      name: "orders",
      url: `${origin}/hook`,
      secret: SECRET,
      timeoutMs: 10_000,
      maxAttempts: 1,
    };
    const { signal } = new AbortController();
    return {
      send: async () => (await sender.send({ id: "1", body: "{}" }, webhook, signal)).kind === "delivered",
      [Symbol.asyncDispose]: () => sender.close(),
    };
  },
  "the key set of a provider": () => {
    let keys: RemoteKeySet | null = null;
    return {
      async send() {
        const isFirst = keys === null;
        // It fetches as soon as it is made; both calls wait for that.
        keys ??= new RemoteKeySet({ url: `${origin}/keys`, allowsPrivateNetwork: false, log: quiet });
        const before = requests.length;
        await keys.refetch();
        return isFirst ? keys.isLoaded : requests.length > before;
      },
      [Symbol.asyncDispose]: withoutEnd,
    };
  },
  "the discovery of OpenID Connect": () => {
    return {
      async send() {
        const provider = {
          name: "corp",
          kind: "oidc",
          issuer: origin,
          clientId: "c",
          secret: null,
          settings: {},
        } as const;
        return makeDiscovery()(provider).then(
          () => true,
          () => false,
        );
      },
      [Symbol.asyncDispose]: withoutEnd,
    };
  },
};

test.each(Object.entries(REQUESTERS))(
  "%s connects to the public address that was checked, and not when its name has come to point to this machine",
  async (_, open) => {
    await using requester = open();
    expect(await requester.send()).toBe(true);
    expect([resolver.queried, resolver.connected, requests.length]).toEqual([[HOST], [PUBLIC], 1]);

    expect(await requester.send()).toBe(false);
    expect(resolver.queried.length).toBeGreaterThan(1);
    expect([resolver.connected, requests.length]).toEqual([[PUBLIC], 1]);
  },
);

test("without the check, a second connection by the name reaches this machine", async () => {
  for (const address of [PUBLIC, LOOPBACK]) {
    const [response] = await once(get(origin, { agent: false }), "response");
    response.resume();
    expect(resolver.connected.at(-1)).toBe(address);
  }
  expect(requests).toHaveLength(2);
});
