import { generateKeyPairSync, type JsonWebKey, type KeyObject, randomBytes } from "node:crypto";
import { SignJWT } from "jose";
import { describe, expect, test } from "vitest";
import { readTokenKeys } from "../../accounts/identity/token-keys.ts";
import { signToken, verifyToken } from "../../accounts/identity/tokens.ts";
import { isValidSignature, parseKeySet, parsePublicKeySet, signContent } from "../../runtime/web-keys.ts";

const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 });
const ec = (namedCurve: string) => generateKeyPairSync("ec", { namedCurve });
const curves = { ES256: ec("P-256"), ES384: ec("P-384"), ES512: ec("P-521") };
const edwards = generateKeyPairSync("ed25519");
const secret = randomBytes(64);
const OCT = { kty: "oct", k: secret.toString("base64url") };

const jwkOf = (key: KeyObject): JsonWebKey => key.export({ format: "jwk" });
const keysOf = (jwtSecret: unknown) =>
  readTokenKeys({ jwtSecret: JSON.stringify(jwtSecret), jwtSecretIsBase64: false, jwtPrivateKey: null });
const sign = (alg: string, key: KeyObject | Uint8Array, header = {}) =>
  new SignJWT({ role: "admin" }).setProtectedHeader({ alg, ...header }).sign(key);
const verify = (token: string, jwtSecret: unknown) => verifyToken(token, { keys: keysOf(jwtSecret), audience: null });
const refusal = expect.objectContaining({ kind: "unauthenticated", code: "INVALID_TOKEN" });

const PAIRS: readonly (readonly [alg: string, privateKey: KeyObject | Uint8Array, jwk: JsonWebKey])[] = [
  ...["HS256", "HS384", "HS512"].map((alg) => [alg, secret, OCT] as const),
  ...["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"].map(
    (alg) => [alg, rsa.privateKey, jwkOf(rsa.publicKey)] as const,
  ),
  ...Object.entries(curves).map(([alg, pair]) => [alg, pair.privateKey, jwkOf(pair.publicKey)] as const),
  ["EdDSA", edwards.privateKey, jwkOf(edwards.publicKey)],
];

describe.each(PAIRS)("a token of another program, signed with %s", (alg, privateKey, jwk) => {
  test.each([
    ["a JWK", jwk],
    ["a JWK with its algorithm", { ...jwk, alg, use: "sig", kid: "theirs" }],
    ["a JWKS", { keys: [jwk] }],
    ["a list", [jwk]],
    ["a JWKS with other keys", { keys: PAIRS.map(([, , each], index) => ({ ...each, kid: `key ${index}` })) }],
  ])("is verified with %s", async (_what, setting) => {
    expect(verify(await sign(alg, privateKey), setting).claims).toEqual({ role: "admin" });
  });

  test("is refused if a character of its signature or claims differs", async () => {
    const [header, claims, signature] = (await sign(alg, privateKey)).split(".") as [string, string, string];
    const other = signature.startsWith("A") ? "B" : "A";
    const more = Buffer.from('{"role":"service_role"}').toString("base64url");
    for (const token of [
      `${header}.${claims}.${other}${signature.slice(1)}`,
      `${header}.${more}.${signature}`,
      `${header}.${claims}.${signature.slice(0, -8)}`,
      `${header}.${claims}.`,
      `${header}.${claims}.${signature}=`,
    ]) {
      expect(() => verify(token, jwk)).toThrow(refusal);
    }
  });

  test("is refused with a key of any other type or algorithm", async () => {
    const token = await sign(alg, privateKey);
    const others = PAIRS.filter(([, key]) => key !== privateKey).map(([, , each]) => each);
    expect(others.length).toBeGreaterThan(3);
    for (const other of others) expect(() => verify(token, other)).toThrow(refusal);
    const restricted = PAIRS.filter(([name, key]) => key === privateKey && name !== alg);
    for (const [name, , each] of restricted) expect(() => verify(token, { ...each, alg: name })).toThrow(refusal);
  });
});

describe("a public key is never an HMAC secret", () => {
  test.each([
    ["PEM", rsa.publicKey.export({ type: "spki", format: "pem" }) as string],
    ["DER", rsa.publicKey.export({ type: "spki", format: "der" })],
    ["its JWK", JSON.stringify(jwkOf(rsa.publicKey))],
    ["its modulus", Buffer.from(jwkOf(rsa.publicKey).n!, "base64url")],
  ])("a token signed with its %s is refused", async (_what, material) => {
    const forged = await sign("HS256", Buffer.from(material as string));
    expect(() => verify(forged, jwkOf(rsa.publicKey))).toThrow(refusal);
    expect(() => verify(forged, { keys: [OCT, jwkOf(rsa.publicKey)] })).toThrow(refusal);
  });

  test("a key cannot declare an algorithm of another type", () => {
    expect(() => parseKeySet(JSON.stringify({ ...jwkOf(rsa.publicKey), alg: "HS256" }))).toThrow("cannot use HS256");
    expect(() => parseKeySet(JSON.stringify({ ...OCT, alg: "RS256" }))).toThrow("cannot use RS256");
    expect(parseKeySet(JSON.stringify({ ...jwkOf(rsa.publicKey), alg: "none" }))).toEqual([]);
  });

  test("a token without a signature is refused", () => {
    const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
    for (const alg of ["none", "None", "NONE", ""]) {
      for (const signature of ["", "AAAA"]) {
        const token = `${encode({ alg, typ: "JWT" })}.${encode({ role: "admin" })}.${signature}`;
        expect(() => verify(token, { keys: [OCT, jwkOf(rsa.publicKey)] })).toThrow(refusal);
      }
    }
  });
});

describe("a key id", () => {
  const other = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const set = {
    keys: [
      { ...jwkOf(rsa.publicKey), kid: "one" },
      { ...jwkOf(other.publicKey), kid: "two" },
    ],
  };

  test("selects the key", async () => {
    expect(verify(await sign("RS256", other.privateKey, { kid: "two" }), set).claims).toEqual({ role: "admin" });
    expect(() => verify("", set)).toThrow(refusal);
  });

  test("that is forged selects no other key", async () => {
    for (const kid of ["one", "three", "../two", "two' or '1'='1", "", "__proto__"]) {
      const token = await sign("RS256", other.privateKey, { kid });
      expect(() => verify(token, set)).toThrow(refusal);
    }
  });

  test("that several keys have selects all of them", async () => {
    const same = { keys: set.keys.map((key) => ({ ...key, kid: "same" })) };
    expect(verify(await sign("RS256", other.privateKey, { kid: "same" }), same).claims).toEqual({ role: "admin" });
  });

  test("may be missing in the token, or in the keys", async () => {
    expect(verify(await sign("RS256", other.privateKey), set).claims).toEqual({ role: "admin" });
    const unnamed = { keys: [jwkOf(rsa.publicKey), jwkOf(other.publicKey)] };
    expect(verify(await sign("RS256", other.privateKey, { kid: "two" }), unnamed).claims).toEqual({ role: "admin" });
  });
});

describe("a key set", () => {
  const parse = (value: unknown) => parseKeySet(JSON.stringify(value));

  test.each([
    ["of another purpose", { ...jwkOf(rsa.publicKey), use: "enc" }],
    ["with other operations", { ...jwkOf(rsa.publicKey), key_ops: ["wrapKey"] }],
    ["of an unknown type", { kty: "AKP", pub: "AA" }],
    ["of a curve without signatures", jwkOf(generateKeyPairSync("x25519").publicKey)],
    ["of a curve without an algorithm", jwkOf(generateKeyPairSync("ed448").publicKey)],
    ["for encryption", { ...jwkOf(rsa.publicKey), alg: "RSA-OAEP" }],
  ])("leaves out a key %s", (_what, jwk) => {
    expect(parse({ keys: [jwk, OCT] })).toHaveLength(1);
  });

  test.each([
    ["text that is not JSON", "{", "not valid JSON"],
    ["a short secret", JSON.stringify({ kty: "oct", k: "AAAA" }), "fewer than 32 bytes"],
    ["a secret without a value", JSON.stringify({ kty: "oct" }), "fewer than 32 bytes"],
    [
      "a short RSA key",
      JSON.stringify(jwkOf(generateKeyPairSync("rsa", { modulusLength: 1024 }).publicKey)),
      "fewer than 2048 bits",
    ],
    ["an RSA key without a modulus", '{"kty":"RSA","e":"AQAB"}', "not valid"],
    ["a key that is none", '{"keys":[7]}', "not a JSON object with kty"],
    ["too many keys", JSON.stringify({ keys: Array(101).fill(OCT) }), "more than 100 keys"],
  ])("with %s is refused", (_what, text, message) => {
    expect(() => parseKeySet(text)).toThrow(message);
  });

  test("of another party gives neither secrets nor private keys", () => {
    const keys = [OCT, jwkOf(rsa.privateKey), jwkOf(curves.ES256.publicKey), { kty: "RSA" }, 7];
    const parsed = parsePublicKeySet(JSON.stringify({ keys }));
    expect(parsed.map(({ key, signingKey }) => [key.type, signingKey])).toEqual([
      ["public", null],
      ["public", null],
    ]);
    expect(() => parsePublicKeySet(JSON.stringify(keys))).toThrow("not a JSON object with keys");
  });

  test("signs with its private key, or else with its secret, unless their operations say otherwise", () => {
    const signingOf = (value: unknown) => keysOf(value).signing?.algorithm ?? null;
    expect(signingOf({ keys: [OCT, jwkOf(curves.ES256.privateKey)] })).toBe("ES256");
    expect(signingOf({ keys: [{ ...OCT, alg: "HS512" }, jwkOf(rsa.publicKey)] })).toBe("HS512");
    expect(signingOf(jwkOf(edwards.privateKey))).toBe("EdDSA");
    expect(signingOf({ ...OCT, key_ops: ["verify"] })).toBe(null);
    expect(signingOf(jwkOf(rsa.publicKey))).toBe(null);
    const keys = keysOf({ keys: [{ ...jwkOf(curves.ES256.privateKey), kid: "ours" }] });
    const token = signToken({ role: "admin" }, { ...keys, signing: keys.signing! }, { timestamp: false });
    expect(verifyToken(token, { keys, audience: null }).claims).toEqual({ role: "admin" });
    expect(keys.verifying[0]).toMatchObject({ id: "ours", isForeign: false });
    expect(keys.verifying[0]!.key.type).toBe("public");
  });
});

test("a signature is bound to its algorithm", () => {
  const signature = signContent("text", "PS256", rsa.privateKey);
  expect(isValidSignature(signature, "text", "PS256", rsa.publicKey)).toBe(true);
  expect(isValidSignature(signature, "text", "RS256", rsa.publicKey)).toBe(false);
  expect(isValidSignature(signature, "other", "PS256", rsa.publicKey)).toBe(false);
});
