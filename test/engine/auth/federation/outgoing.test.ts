import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, test } from "vitest";
import { isPublic, makeOutgoing } from "../../../../engine/auth/federation/outgoing.ts";

const ASKED = { body: undefined, headers: {}, method: "GET", redirect: "manual" } as const;

describe("an address", () => {
  test.each([
    "0.0.0.0",
    "10.1.2.3",
    "100.64.0.1",
    "127.0.0.1",
    "169.254.169.254",
    "172.31.255.255",
    "192.168.1.1",
    "198.19.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::ffff:10.0.0.1",
    "::ffff:7f00:1",
    "64:ff9b::a00:1",
    "2002:a00:1::1",
    "fc00::1",
    "fe80::1",
    "ff02::1",
  ])("%s is not public", (address) => expect(isPublic(address)).toBe(false));

  test.each(["1.1.1.1", "172.32.0.1", "192.169.0.1", "223.255.255.255", "2606:4700::1111", "::ffff:1.1.1.1"])(
    "%s is public",
    (address) => expect(isPublic(address)).toBe(true),
  );
});

describe("a provider elsewhere", () => {
  const ask = makeOutgoing({ home: "https://idp.example.org", isPrivateAllowed: false });

  test.each([
    ["http://idp.example.org/keys", "no https"],
    ["http://127.0.0.1/keys", "no https"],
    ["http://localhost/keys", "no https"],
    ["https://127.0.0.1/keys", "private"],
    ["https://localhost/keys", "private"],
    ["https://[::1]/keys", "private"],
    ["https://2130706433/keys", "private"],
    ["https://0x7f.1/keys", "private"],
    ["ftp://idp.example.org/keys", "no https"],
  ])("is not asked at %s", async (address, why) => {
    await expect(ask(address, ASKED)).rejects.toThrow(why);
  });

  test("in the same network is asked where that was said, and then by https", async () => {
    const permitted = makeOutgoing({ home: "https://idp.example.org", isPrivateAllowed: true });
    // Nobody is there: it was tried.
    await expect(permitted("https://127.0.0.1:9/keys", ASKED)).rejects.not.toThrow("private");
    await expect(permitted("http://10.0.0.1/keys", ASKED)).rejects.toThrow("no https");
  });
});

test("a provider on this machine is asked without encryption, led nowhere else, and listened to for a megabyte", async () => {
  const server = createServer((request, response) => {
    if (request.url === "/elsewhere") response.writeHead(302, { Location: "https://evil.example.org/" }).end();
    else response.end("x".repeat(request.url === "/much" ? 1024 * 1024 + 1 : 10));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const home = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const ask = makeOutgoing({ home, isPrivateAllowed: false });
  expect(await (await ask(`${home}/little`, ASKED)).text()).toHaveLength(10);
  expect((await ask(`${home}/elsewhere`, ASKED)).status).toBe(302);
  await expect(ask(`${home}/much`, ASKED)).rejects.toThrow("longer");
  server.close();
});
