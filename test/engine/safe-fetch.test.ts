import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, test } from "vitest";
import { makeSafeFetch } from "../../engine/safe-fetch.ts";

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
