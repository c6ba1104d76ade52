import { createPublicKey, generateKeyPairSync, type JsonWebKey } from "node:crypto";
import jwt from "jsonwebtoken";
import { describe, expect, test } from "vitest";
import { makeTokenKeys } from "../../../accounts/identity/token-keys.ts";
import { signToken, verifySignature } from "../../../accounts/identity/tokens.ts";

const SECRETS = ["the secret of this year, which is long", "the secret of last year, which is long"] as const;
const NONE = { jwtSecret: null, jwtSecretIsBase64: false, jwtPrivateKey: null };
const [now, before] = SECRETS.map((jwtSecret) => makeTokenKeys({ ...NONE, jwtSecret }));
const rotated = makeTokenKeys({ ...NONE, jwtSecret: SECRETS[0], jwtPreviousSecrets: [SECRETS[1]] });

const newPem = () =>
  generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({ type: "pkcs8", format: "pem" }) as string;
const kidOf = (token: string) => jwt.decode(token, { complete: true })!.header.kid;

describe("a key that replaced another", () => {
  test("signs new tokens, and is named in them", () => {
    const token = signToken({ role: "anon" }, rotated);
    expect(kidOf(token)).toBe(now!.signing.id);
    expect(kidOf(token)).not.toBe(before!.signing.id);
    expect(verifySignature(token, now!, {})).toMatchObject({ role: "anon" });
    expect(() => verifySignature(token, before!, {})).toThrow("invalid signature");
  });

  test.each([
    ["names its key", signToken({ role: "anon" }, before!)],
    ["names none", jwt.sign({ role: "anon" }, SECRETS[1])],
    ["names one that another issuer gave the name", jwt.sign({ role: "anon" }, SECRETS[1], { keyid: "theirs" })],
  ])("keeps an earlier token valid that %s", (_which, token) => {
    expect(verifySignature(token, rotated, {})).toMatchObject({ role: "anon" });
    expect(() => verifySignature(token, now!, {})).toThrow("invalid signature");
  });

  test("refuses a token that was signed by neither, with any key id", () => {
    const keyid = before!.signing.id;
    for (const options of [{}, { keyid }]) {
      const token = jwt.sign({ role: "admin" }, "a secret that somebody else has made up", options);
      expect(() => verifySignature(token, rotated, {})).toThrow("invalid signature");
    }
  });

  test("refuses another algorithm, and an expired token", () => {
    const other = jwt.sign({ role: "anon" }, SECRETS[1], { algorithm: "HS512" });
    expect(() => verifySignature(other, rotated, {})).toThrow("invalid algorithm");
    const expired = signToken({ role: "anon", exp: 1 }, before!);
    expect(() => verifySignature(expired, rotated, {})).toThrow("jwt expired");
  });

  test("may be an RSA key; of the previous one, the public key is enough", () => {
    const [newer, older] = [newPem(), newPem()];
    const old = makeTokenKeys({ ...NONE, jwtPrivateKey: older });
    const publicPem = createPublicKey(older).export({ type: "spki", format: "pem" }) as string;
    const token = signToken({ role: "anon" }, old);
    for (const previous of [older, publicPem]) {
      const keys = makeTokenKeys({ ...NONE, jwtPrivateKey: newer, jwtPreviousPublicKeys: [previous] });
      expect(verifySignature(token, keys, {})).toMatchObject({ role: "anon" });
      expect(keys.verifying.map(({ key }) => key.type)).toEqual(["public", "public"]);
      expect(keys.signing.id).not.toBe(old.signing.id);
    }
  });
});

test("the id of an RSA key is its thumbprint: the example of RFC 7638", () => {
  const n =
    "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw";
  const jwk: JsonWebKey = { kty: "RSA", n, e: "AQAB" };
  const example = createPublicKey({ key: jwk, format: "jwk" }).export({ type: "spki", format: "pem" }) as string;
  const keys = makeTokenKeys({ ...NONE, jwtPrivateKey: newPem(), jwtPreviousPublicKeys: [example] });
  expect(keys.verifying[1]!.id).toBe("NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs");
});
