import { createHmac, generateKeyPairSync } from "node:crypto";
import jwt from "jsonwebtoken";
import { describe, expect, test } from "vitest";
import { makeAuthenticator } from "../../../accounts/identity/authenticator.ts";
import { makeTokenKeys } from "../../../accounts/identity/token-keys.ts";
import { findUsualKey, makeRoleKey, signToken, verifyToken } from "../../../accounts/identity/tokens.ts";
import { type ClaimPath, parseClaimPath } from "../../../config/claim-path.ts";

const SECRET = "a secret that is long enough for the tests";
const EARLIER = "the secret that was there before this one";
const ofSecret = (jwtSecret: string, jwtPreviousSecrets: readonly string[] = []) =>
  makeTokenKeys({ jwtSecret, jwtPreviousSecrets, jwtSecretIsBase64: false, jwtPrivateKey: null });
const keys = ofSecret(SECRET, [EARLIER]);
const CLAIMS = { sub: "7", role: "authenticated" };

const encode = (text: string) => Buffer.from(text).toString("base64url");
function sign(head: object, claims = JSON.stringify(CLAIMS), { secret = SECRET, hash = "sha256" } = {}): string {
  const content = `${encode(JSON.stringify(head))}.${encode(claims)}`;
  return `${content}.${createHmac(hash, secret).update(content).digest("base64url")}`;
}
const isGood = (token: string) => {
  try {
    return verifyToken(token, { keys, audience: null }).claims.sub === "7";
  } catch {
    return false;
  }
};

describe("a token", () => {
  test.each([
    ["that we have signed", signToken(CLAIMS, keys)],
    ["that was signed with the secret of before", signToken(CLAIMS, ofSecret(EARLIER))],
    ["of somebody with the same secret, who names no key", sign({ alg: "HS256" })],
    ["of somebody with the same secret, who names it otherwise", sign({ typ: "JWT", alg: "HS256", kid: "main" })],
  ])("%s is verified by the fast path", (_, token) => {
    expect(findUsualKey(token, keys)).not.toBeNull();
    expect(isGood(token)).toBe(true);
  });

  const [head, claims, signature] = signToken(CLAIMS, keys).split(".") as [string, string, string];
  const { privateKey } = generateKeyPairSync("rsa", {
    modulusLength: 2048,
    privateKeyEncoding: { type: "pkcs8", format: "pem" },
    publicKeyEncoding: { type: "spki", format: "pem" },
  });
  const pair = makeTokenKeys({ jwtSecret: null, jwtSecretIsBase64: false, jwtPrivateKey: privateKey });
  test.each([
    ["with another's signature", sign({ alg: "HS256" }, undefined, { secret: "another" })],
    ["of another algorithm, made with our secret", sign({ alg: "HS512" }, undefined, { hash: "sha512" })],
    ["that says another algorithm than it was signed with", sign({ alg: "HS512" })],
    ["that says it has none", sign({ alg: "none" })],
    ["without a signature", `${head}.${claims}.`],
    ["without its third part", `${head}.${claims}`],
    ["with a part too many", `${head}.${claims}.${signature}.${signature}`],
    ["with other claims", `${head}.${encode('{"sub":"7","role":"admin"}')}.${signature}`],
    ["with half of its signature", `${head}.${claims}.${signature.slice(0, 20)}`],
    [
      "that names one of our keys and is signed with the other",
      sign({ alg: "HS256", kid: keys.signing.id }, undefined, { secret: EARLIER }),
    ],
    ["whose head is no object", `${encode("[]")}.${claims}.${signature}`],
    ["whose head is no JSON", `${encode("{")}.${claims}.${signature}`],
    ["that wants something understood which we do not", sign({ alg: "HS256", crit: ["until"], until: "noon" })],
    ["signed with a private key", signToken(CLAIMS, pair)],
  ])("%s is not, and is rejected", (_, token) => {
    expect(findUsualKey(token, keys)).toBeNull();
    expect(isGood(token)).toBe(false);
  });

  test("with more in its header is left to jsonwebtoken, and may be valid", () => {
    const token = sign({ alg: "HS256", x5t: "thumb" });
    expect(findUsualKey(token, keys)).toBeNull();
    expect(isGood(token)).toBe(true);
  });

  test("of a deployment with a key pair is left to jsonwebtoken", () => {
    expect(findUsualKey(signToken(CLAIMS, pair), pair)).toBeNull();
    expect(findUsualKey(signToken(CLAIMS, keys), pair)).toBeNull();
  });
});

const keyAt = (jwtRoleClaim: ClaimPath) => makeRoleKey("service_role", keys, { jwtIssuer: "us", jwtRoleClaim });

test("the key of a role is always the same", () => {
  expect(jwt.decode(keyAt(["role"]))).toEqual({ iss: "us", role: "service_role" });
  expect(keyAt(["role"])).toBe(keyAt(["role"]));
});

test.each([
  ".role",
  ".app_metadata.role",
  '."https://hasura.io/jwt/claims"."x-hasura-default-role"',
  ".roles[0]",
  '.roles[?(@ ^== "service")]',
])("the key of a role names it if the role is the claim %s", async (written) => {
  const jwtRoleClaim = parseClaimPath(written)!;
  const callers = makeAuthenticator({ anonRole: "anon", jwtAudience: null, jwtRoleClaim, jwtCacheEntries: 1, keys });
  const { role } = await callers.authenticate({ authorization: null, apiKey: keyAt(jwtRoleClaim) });
  expect(role).toBe("service_role");
});
