import type { webcrypto } from "node:crypto";
import jwt from "jsonwebtoken";
import { beforeAll, describe, expect, test } from "vitest";
import {
  create,
  decode,
  getNumericDate,
  verify,
} from "../../../../../rest-gateway/functions/thread/deno-modules/djwt.ts";

const SECRET = "a secret of thirty-two letters..";
const usages: webcrypto.KeyUsage[] = ["sign", "verify"];
const hmac = (hash: string, secret = SECRET) =>
  crypto.subtle.importKey("raw", new TextEncoder().encode(secret), { name: "HMAC", hash }, true, usages);
const rsa = { modulusLength: 2048, publicExponent: new Uint8Array([1, 0, 1]), hash: "SHA-256" };

let key: webcrypto.CryptoKey;
beforeAll(async () => {
  key = await hmac("SHA-256");
});

test("tokens are those of other libraries, in both directions", async () => {
  const token = await create({ alg: "HS256", typ: "JWT" }, { user: "ann", exp: getNumericDate(60) }, key);
  expect(jwt.verify(token, SECRET)).toMatchObject({ user: "ann" });
  const other = jwt.sign({ user: "bob" }, SECRET, { algorithm: "HS512" });
  expect(await verify(other, await hmac("SHA-512"))).toMatchObject({ user: "bob" });
  expect(decode(token)).toMatchObject([{ alg: "HS256", typ: "JWT" }, { user: "ann" }, expect.any(Uint8Array)]);
});

test.each([
  ["RS256", { name: "RSASSA-PKCS1-v1_5", ...rsa }],
  ["PS256", { name: "RSA-PSS", ...rsa }],
  ["ES256", { name: "ECDSA", namedCurve: "P-256" }],
])("%s signs and verifies with a pair of keys", async (alg, algorithm) => {
  const pair = (await crypto.subtle.generateKey(algorithm, true, usages)) as webcrypto.CryptoKeyPair;
  const token = await create({ alg }, { user: "ann" }, pair.privateKey);
  expect(await verify(token, pair.publicKey)).toEqual({ user: "ann" });
  await expect(verify(`${token.slice(0, -6)}AAAAAA`, pair.publicKey)).rejects.toThrow("does not match");
});

describe("a token is refused", () => {
  test.each([
    ["that has expired", { exp: getNumericDate(-60) }, "The jwt is expired."],
    ["that is not valid yet", { nbf: getNumericDate(600) }, "The jwt is used too early."],
    ["with an expiry that is no number", { exp: "soon" as unknown as number }, "invalid 'exp'"],
    ["for another audience", { aud: "others" }, "audience claim has failed"],
  ])("%s", async (_name, payload, message) => {
    const token = await create({ alg: "HS256" }, payload, key);
    await expect(verify(token, key, { audience: "us" })).rejects.toThrow(message);
  });

  test("that another key has signed, or that was changed", async () => {
    const token = await create({ alg: "HS256" }, { user: "ann" }, await hmac("SHA-256", "another secret"));
    await expect(verify(token, key)).rejects.toThrow("signature does not match");
    const [header, , signature] = (await create({ alg: "HS256" }, { user: "ann" }, key)).split(".");
    const changed = Buffer.from('{"user":"bob"}').toString("base64url");
    await expect(verify(`${header}.${changed}.${signature}`, key)).rejects.toThrow("signature does not match");
  });

  test("whose algorithm is not the key's, even where it says that there is no signature", async () => {
    const unsigned = await create({ alg: "none" }, { user: "ann" }, null);
    expect(await verify(unsigned, null)).toEqual({ user: "ann" });
    await expect(verify(unsigned, key)).rejects.toThrow("does not match the key's algorithm");
    const other = await create({ alg: "HS512" }, {}, await hmac("SHA-512"));
    await expect(verify(other, key)).rejects.toThrow("does not match the key's algorithm");
    await expect(create({ alg: "RS256" }, {}, key)).rejects.toThrow("does not match the key's algorithm");
    await expect(verify("no token", key)).rejects.toThrow("serialization of the jwt is invalid");
  });
});

test("leeways, audiences and predicates of the caller decide", async () => {
  const expired = await create({ alg: "HS256" }, { exp: getNumericDate(-60), aud: ["a", "us"] }, key);
  expect(await verify(expired, key, { expLeeway: 120, audience: /^us$/ })).toMatchObject({ aud: ["a", "us"] });
  expect(await verify(expired, key, { ignoreExp: true })).toBeDefined();
  const failing = verify(expired, key, { ignoreExp: true, predicates: [({ aud }) => aud === "others"] });
  await expect(failing).rejects.toThrow("predicates");
});

test("numeric dates are seconds", () => {
  expect(getNumericDate(new Date(5_000))).toBe(5);
  expect(Math.abs(getNumericDate(60) - 60 - Date.now() / 1000)).toBeLessThan(60);
});
