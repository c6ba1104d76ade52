import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { SignJWT } from "jose";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { makeAuthenticator } from "../../../accounts/identity/authenticator.ts";
import { RemoteKeySet } from "../../../accounts/identity/remote-key-set.ts";
import { makeTokenKeys } from "../../../accounts/identity/token-keys.ts";
import { signToken } from "../../../accounts/identity/tokens.ts";
import { SECRET } from "../../secret.ts";

const [first, second] = [1, 2].map(() => generateKeyPairSync("ec", { namedCurve: "P-256" }));
const keys = makeTokenKeys({ jwtSecret: SECRET, jwtSecretIsBase64: false, jwtPrivateKey: null });
const jwk = (kid: string, { publicKey }: { publicKey: KeyObject }) => ({ ...publicKey.export({ format: "jwk" }), kid });
const sign = (kid: string, { privateKey }: { privateKey: KeyObject }, claims = {}) =>
  new SignJWT({ role: "admin", ...claims }).setProtectedHeader({ alg: "ES256", kid }).sign(privateKey);
const refusal = expect.objectContaining({ kind: "unauthenticated", code: "INVALID_TOKEN" });

/** The address of an issuer's keys. */
class KeyServer {
  body: string | null = null;
  headers: Record<string, string> = {};
  requests = 0;
  readonly #server: Server = createServer((_request, response) => {
    this.requests++;
    const status = this.headers.location ? 302 : this.body === null ? 500 : 200;
    response.writeHead(status, this.headers).end(this.body ?? "");
  });

  async listen() {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/jwks.json`;
  }

  async close() {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  publish(...published: object[]) {
    this.body = JSON.stringify({ keys: published });
  }
}

let server: KeyServer;
let warnings: object[];
let url: string;
beforeEach(async () => {
  server = new KeyServer();
  url = await server.listen();
  warnings = [];
});
afterEach(async () => {
  vi.useRealTimers();
  await server.close();
});

function authenticatorWith(requiredIssuer: string | null = null) {
  const log = { warn: (entry: object) => void warnings.push(entry), info: () => {} };
  const remoteKeys = new RemoteKeySet({ url, log: log as never });
  const authenticator = makeAuthenticator({
    anonRole: "anon",
    jwtAudience: null,
    jwtRoleClaim: ["role"],
    jwtCacheEntries: 100,
    keys,
    remoteKeys,
    requiredIssuer,
  });
  return {
    remoteKeys,
    authenticate: async (token: string) => authenticator.authenticate({ authorization: `Bearer ${token}` }),
  };
}

describe("the keys at an address", () => {
  test("verify the issuer's tokens beside our own", async () => {
    server.publish(jwk("1", first!));
    const { authenticate } = authenticatorWith();
    expect(await authenticate(await sign("1", first!))).toMatchObject({ role: "admin" });
    expect(await authenticate(signToken({ role: "anon" }, keys))).toMatchObject({ role: "anon" });
    await expect(authenticate(await sign("1", second!))).rejects.toEqual(refusal);
    expect(server.requests).toBeLessThanOrEqual(2);
  });

  test("are fetched again for an unknown key id, and a removed key ends the tokens that it has signed", async () => {
    server.publish(jwk("1", first!));
    const { authenticate } = authenticatorWith();
    const old = await sign("1", first!);
    await authenticate(old);
    server.publish(jwk("2", second!));
    expect(await authenticate(old)).toMatchObject({ role: "admin" });
    expect(await authenticate(await sign("2", second!))).toMatchObject({ role: "admin" });
    await expect(authenticate(old)).rejects.toEqual(refusal);
  });

  test("are fetched at a bounded rate, however many unknown key ids are sent", async () => {
    server.publish(jwk("1", first!));
    const { authenticate } = authenticatorWith();
    const forged = await Promise.all(Array.from({ length: 200 }, (_, index) => sign(`forged ${index}`, second!)));
    for (const token of forged) await expect(authenticate(token)).rejects.toEqual(refusal);
    expect(server.requests).toBeLessThanOrEqual(6);
    expect(await authenticate(await sign("1", first!))).toMatchObject({ role: "admin" });
  });

  test("stay in use while the address fails, is no key set, redirects or is too large", async () => {
    server.publish(jwk("1", first!));
    const { authenticate, remoteKeys } = authenticatorWith();
    const token = await sign("1", first!);
    await authenticate(token);
    const now = Date.now();
    vi.useFakeTimers({ toFake: ["Date"], now });
    const failures: (() => void)[] = [
      () => (server.body = null),
      () => (server.body = "<html>"),
      () => (server.body = "[]"),
      () => (server.body = `{"keys":[${'"x",'.repeat(300_000)}7]}`),
      () => (server.body = JSON.stringify({ keys: Array(101).fill(jwk("2", second!)) })),
      () => (server.headers = { location: "http://169.254.169.254/" }),
    ];
    for (const [index, fail] of failures.entries()) {
      fail();
      vi.setSystemTime(now + (index + 1) * 1_000_000);
      expect(await remoteKeys.refetch()).toBe(false);
      expect(await authenticate(token)).toMatchObject({ role: "admin" });
    }
    expect(warnings).toHaveLength(1);
    server.headers = {};
    server.publish(jwk("2", second!));
    vi.setSystemTime(now + 10_000_000);
    expect(await remoteKeys.refetch()).toBe(true);
    await expect(authenticate(token)).rejects.toEqual(refusal);
  });

  test("that were never available are an error of the service, not of the token", async () => {
    const { authenticate } = authenticatorWith();
    await expect(authenticate(await sign("1", first!))).rejects.toMatchObject({ kind: "unavailable" });
    expect(await authenticate(signToken({ role: "anon" }, keys))).toMatchObject({ role: "anon" });
  });

  test("are no secrets, even if a secret is published", async () => {
    const published = Buffer.from("a secret that everybody can read at the address");
    server.publish({ kty: "oct", k: published.toString("base64url"), kid: "1" }, jwk("2", second!));
    const { authenticate } = authenticatorWith();
    const forged = await new SignJWT({ role: "admin" }).setProtectedHeader({ alg: "HS256", kid: "1" }).sign(published);
    await expect(authenticate(forged)).rejects.toEqual(refusal);
    expect(await authenticate(await sign("2", second!))).toMatchObject({ role: "admin" });
  });

  test("verify only tokens of the required issuer, which our own tokens need not name", async () => {
    server.publish(jwk("1", first!));
    const { authenticate } = authenticatorWith("https://issuer.example");
    const right = await sign("1", first!, { iss: "https://issuer.example" });
    expect(await authenticate(right)).toMatchObject({ role: "admin" });
    for (const claims of [{}, { iss: "https://other.example" }, { iss: ["https://issuer.example"] }]) {
      await expect(authenticate(await sign("1", first!, claims))).rejects.toMatchObject({
        code: "VERIFICATION_FAILED",
      });
    }
    expect(await authenticate(signToken({ role: "anon" }, keys))).toMatchObject({ role: "anon" });
  });
});
