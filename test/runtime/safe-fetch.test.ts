import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer, type RequestListener, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { afterEach, describe, expect, test } from "vitest";
import { freePort } from "../../bench/measuring/free-port.ts";
import { type AllowedNetwork, findUrlProblem, makeSafeAgent, makeSafeFetch } from "../../runtime/safe-fetch.ts";
import { makeAuthority } from "../certificates.ts";

const ASKED = { body: undefined, headers: {}, method: "GET", redirect: "manual" } as const;

describe("a provider on another machine", () => {
  const ask = makeSafeFetch({ providerUrl: "https://idp.example.org", allowsPrivateNetwork: false });

  test.each([
    ["http://idp.example.org/keys", "not an https URL"],
    ["http://127.0.0.1/keys", "not an https URL"],
    ["http://localhost/keys", "not an https URL"],
    ["https://127.0.0.1/keys", "private"],
    ["https://localhost/keys", "private"],
    ["https://[::1]/keys", "private"],
    ["https://[::ffff:10.0.0.1]/keys", "private"],
    ["https://[64:ff9b::a00:1]/keys", "private"],
    ["https://192.0.2.1/keys", "private"],
    ["https://2130706433/keys", "private"],
    ["https://0x7f.1/keys", "private"],
    ["ftp://idp.example.org/keys", "not an https URL"],
  ])("is not fetched from %s", async (address, why) => {
    await expect(ask(address, ASKED)).rejects.toThrow(why);
  });

  test("in the private network is fetched only with allowsPrivateNetwork, and only by https", async () => {
    const permitted = makeSafeFetch({ providerUrl: "https://idp.example.org", allowsPrivateNetwork: true });
    // Nobody is there: it was tried.
    await expect(permitted("https://127.0.0.1:9/keys", ASKED)).rejects.not.toThrow("private");
    await expect(permitted("http://10.0.0.1/keys", ASKED)).rejects.toThrow("not an https URL");
  });
});

test.each([
  ["fd00:ec2::23", true],
  ["169.254.169.254", true],
  ["168.63.129.16", true],
  ["127.0.0.1", false],
  ["10.0.0.1", false],
])(
  "a provider whose host name comes to point to %s is not fetched (private network: %s)",
  async (address, isPrivate) => {
    // Nobody is at the first address: it is tried, and the name is looked up again for the next connection.
    const url = `https://idp.example.org:${await freePort()}/keys`;
    const answers = isPrivate ? ["127.0.0.1", address] : [address];
    const looked: string[] = [];
    const ask = makeSafeFetch({
      providerUrl: "https://idp.example.org",
      allowsPrivateNetwork: isPrivate,
      resolve: async (host) => {
        looked.push(host);
        const found = answers[looked.length - 1] ?? address;
        return [{ address: found, family: found.includes(":") ? 6 : 4 }];
      },
    });
    if (isPrivate) await expect(ask(url, ASKED)).rejects.not.toThrow("private address");
    await expect(ask(url, ASKED)).rejects.toThrow("private address");
    expect(looked).toHaveLength(answers.length);
  },
);

test("a provider on this machine may use http; redirects are not followed and responses are limited to 1 MB", async () => {
  const server = createServer((request, response) => {
    if (request.url === "/elsewhere") response.writeHead(302, { Location: "https://evil.example.org/" }).end();
    else response.end("x".repeat(request.url === "/much" ? 1024 * 1024 + 1 : 10));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const home = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const ask = makeSafeFetch({ providerUrl: home, allowsPrivateNetwork: false });
  expect(await (await ask(`${home}/little`, ASKED)).text()).toHaveLength(10);
  expect((await ask(`${home}/elsewhere`, ASKED)).status).toBe(302);
  await expect(ask(`${home}/much`, ASKED)).rejects.toThrow("longer");
  server.close();
});

describe("the rules of URLs", () => {
  const problemOf = (url: string, network: AllowedNetwork) => findUrlProblem(new URL(url), network)?.message ?? null;

  test.each([
    ["https://receiver.example.org/hook", null, null, null],
    ["https://1.1.1.1/hook", null, null, null],
    ["https://[2606:4700::1111]/hook", null, null, null],
    ["http://receiver.example.org/hook", "not an https URL", null, null],
    ["http://1.1.1.1/hook", "not an https URL", "not an https URL", "not an https URL"],
    ["ftp://receiver.example.org/hook", "not an https URL", "not an https URL", "not an https URL"],
    ["https://user:secret@receiver.example.org/", "user name", "user name", "user name"],
    ["https://127.0.0.1/", "private", null, null],
    ["http://127.8.7.6/", "not an https URL", null, null],
    ["https://127.0.0.1./", "private", null, null],
    ["https://[::1]/", "private", null, null],
    ["https://[::ffff:127.0.0.1]/", "private", null, null],
    ["https://2130706433/", "private", null, null],
    ["https://0177.0.0.1/", "private", null, null],
    ["https://0x7f000001/", "private", null, null],
    ["https://127.1/", "private", null, null],
    ["https://10.1.2.3/", "private", "private", null],
    ["http://192.168.1.1/", "not an https URL", "private", null],
    ["https://172.31.255.255/", "private", "private", null],
    ["https://100.64.0.1/", "private", "private", null],
    ["https://[fd00::1]/", "private", "private", null],
    ["https://[::ffff:a00:1]/", "private", "private", null],
    ["https://0.0.0.0/", "private", "private", "private"],
    ["https://[::]/", "private", "private", "private"],
    ["https://169.254.169.254/", "private", "private", "private"],
    ["https://[::ffff:169.254.169.254]/", "private", "private", "private"],
    ["https://0xa9fea9fe/", "private", "private", "private"],
    ["https://100.100.100.200/", "private", "private", "private"],
    ["https://[fd00:ec2::254]/", "private", "private", "private"],
    ["https://[fe80::1]/", "private", "private", "private"],
    ["https://224.0.0.1/", "private", "private", "private"],
    ["https://[ff02::1]/", "private", "private", "private"],
    ["https://255.255.255.255/", "private", "private", "private"],
    ["https://[::127.0.0.1]/", "private", "private", "private"],
    ["https://[64:ff9b::7f00:1]/", "private", "private", "private"],
    ["https://[2002:7f00:1::]/", "private", "private", "private"],
    ["https://[2001:0:a00:1::1]/", "private", "private", "private"],
  ])("%s is refused with public (%s), loopback (%s), private (%s)", (url, ...problems) => {
    for (const [index, network] of (["public", "loopback", "private"] as const).entries()) {
      const problem = problems[index];
      if (problem == null) expect(problemOf(url, network)).toBeNull();
      else expect(problemOf(url, network)).toContain(problem);
    }
  });
});

describe("an agent", () => {
  const servers: Server[] = [];
  const trusted = getCACertificates("default");

  afterEach(() => {
    setDefaultCACertificates(trusted);
    for (const server of servers.splice(0)) {
      server.closeAllConnections();
      server.close();
    }
  });

  async function listen(server: Server): Promise<number> {
    servers.push(server);
    await once(server.listen(0, "127.0.0.1"), "listening");
    return (server.address() as AddressInfo).port;
  }

  async function startReceiver(onRequest: RequestListener = (_, response) => void response.end()) {
    const requests: { host: string | undefined; path: string | undefined }[] = [];
    const port = await listen(
      createServer((request, response) => {
        requests.push({ host: request.headers.host, path: request.url });
        onRequest(request, response);
      }),
    );
    return { port, requests };
  }

  /** A resolver whose answer is another one each time: that of a host that is made to point elsewhere after it was checked. */
  function makeResolver(...answers: readonly (readonly string[])[]) {
    const hosts: string[] = [];
    const resolve = async (host: string) => {
      const addresses = answers[Math.min(hosts.length, answers.length - 1)]!;
      hosts.push(host);
      return addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
    };
    return { hosts, resolve };
  }

  async function post(port: number, network: AllowedNetwork, resolve: ReturnType<typeof makeResolver>["resolve"]) {
    const agent = await makeSafeAgent({ network, connections: 1, resolve });
    try {
      const { statusCode, body } = await agent.request({
        origin: `http://rebind.example:${port}`,
        path: "/hook",
        method: "POST",
      });
      await body.dump();
      return statusCode;
    } finally {
      await agent.destroy();
    }
  }

  test("connects to the address that was checked, which is looked up once, and sends the name as the host", async () => {
    const { port, requests } = await startReceiver();
    const { hosts, resolve } = makeResolver(["127.0.0.1"], ["169.254.169.254"]);
    expect(await post(port, "loopback", resolve)).toBe(200);
    expect(hosts).toEqual(["rebind.example"]);
    expect(requests).toEqual([{ host: `rebind.example:${port}`, path: "/hook" }]);
  });

  test("checks the addresses of a new connection again", async () => {
    const { port, requests } = await startReceiver(
      (_, response) => void response.setHeader("Connection", "close").end(),
    );
    const { hosts, resolve } = makeResolver(["127.0.0.1"], ["10.0.0.1"]);
    const agent = await makeSafeAgent({ network: "loopback", connections: 1, resolve });
    const request = { origin: `http://rebind.example:${port}`, path: "/", method: "GET" } as const;
    await (await agent.request(request)).body.dump();
    await expect(agent.request(request)).rejects.toThrow("private address");
    expect(hosts).toHaveLength(2);
    expect(requests).toHaveLength(1);
    await agent.destroy();
  });

  test("connects to none of the addresses of a host if one of them is refused", async () => {
    const { port, requests } = await startReceiver();
    const { resolve } = makeResolver(["127.0.0.1", "10.0.0.1"]);
    await expect(post(port, "loopback", resolve)).rejects.toThrow("private address");
    expect(requests).toEqual([]);
  });

  test.each([
    ...["127.0.0.1", "10.0.0.1", "172.16.0.1", "192.168.0.1", "100.64.0.1", "169.254.169.254", "0.0.0.0", "224.0.0.1"],
    ...["::1", "::", "fe80::1", "fd00::1", "ff02::1", "::ffff:127.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1"],
    ...["2002:7f00:1::", "2001:0:7f00:1::1"],
  ])("with the public network does not connect to a host with the address %s", async (address) => {
    const agent = await makeSafeAgent({
      network: "public",
      connections: 1,
      resolve: async () => [{ address, family: address.includes(":") ? 6 : 4 }],
    });
    await expect(agent.request({ origin: "https://rebind.example", path: "/", method: "GET" })).rejects.toThrow(
      "rebind.example is not allowed: it has a private address",
    );
    await agent.destroy();
  });

  test("does not send plain HTTP to a public address", async () => {
    const { resolve } = makeResolver(["1.1.1.1"]);
    await expect(post(80, "private", resolve)).rejects.toThrow("not an https URL");
  });

  test("uses no proxy of the environment, and follows no redirect", async () => {
    const { port, requests } = await startReceiver(
      (_, response) => void response.writeHead(307, { Location: "/other" }).end(),
    );
    const { resolve } = makeResolver(["127.0.0.1"]);
    const previous = process.env.HTTP_PROXY;
    process.env.HTTP_PROXY = "http://127.0.0.1:9";
    try {
      expect(await post(port, "loopback", resolve)).toBe(307);
    } finally {
      if (previous === undefined) delete process.env.HTTP_PROXY;
      else process.env.HTTP_PROXY = previous;
    }
    expect(requests.map(({ path }) => path)).toEqual(["/hook"]);
  });

  test("verifies the certificate against the name of the host, although it connects to an address", async () => {
    const folder = await mkdtemp(join(tmpdir(), "safe-fetch-"));
    const authority = await makeAuthority(folder, "Test");
    const files = await authority.sign("receiver.example");
    const [ca, cert, key] = await Promise.all(
      [authority.certificate, files.certificate, files.key].map((file) => readFile(file, "utf8")),
    );
    await rm(folder, { recursive: true });
    setDefaultCACertificates([...trusted, ca!]);
    const names: unknown[] = [];
    const SNICallback = (name: string, done: (error: null) => void) => {
      names.push(name);
      done(null);
    };
    const port = await listen(
      createTlsServer({ key: key!, cert: cert!, SNICallback }, (_, response) => void response.end()),
    );
    const agent = await makeSafeAgent({
      network: "loopback",
      connections: 1,
      resolve: makeResolver(["127.0.0.1"]).resolve,
    });
    const get = (host: string) => agent.request({ origin: `https://${host}:${port}`, path: "/", method: "GET" });
    const { statusCode, body } = await get("receiver.example");
    await body.dump();
    expect([statusCode, names]).toEqual([200, ["receiver.example"]]);
    await expect(get("other.example")).rejects.toThrow("altnames");
    await agent.destroy();
  });

  test("opens connections that begin together with one lookup", async () => {
    const { port, requests } = await startReceiver();
    const { hosts, resolve } = makeResolver(["127.0.0.1"]);
    const agent = await makeSafeAgent({ network: "loopback", connections: 8, resolve });
    const request = { origin: `http://rebind.example:${port}`, path: "/", method: "GET" } as const;
    await Promise.all(Array.from({ length: 8 }, async () => (await agent.request(request)).body.dump()));
    expect([hosts.length, requests.length]).toEqual([1, 8]);
    await agent.destroy();
  });
});
