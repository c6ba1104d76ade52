import { generateKeyPairSync } from "node:crypto";
import jwt from "jsonwebtoken";
import { expect, test } from "vitest";
import { makeProjectKeyReader, makeProjectKeys } from "../../../accounts/identity/project-keys.ts";
import { makeTokenKeys } from "../../../accounts/identity/token-keys.ts";
import { SECRET } from "../../secret.ts";

const OTHER_SECRET = "another secret that is long enough to sign tokens";
const SETTINGS = { anonRole: "web_anon", jwtIssuer: "us", jwtRoleClaim: ["role"] };

const keysOf = (jwtSecret: string | null, more: object = {}) =>
  makeTokenKeys({ jwtSecret, jwtSecretIsBase64: false, jwtPrivateKey: null, ...more });

test("each key stands for the role key of its role", () => {
  const keys = keysOf(SECRET);
  const { publishable, secret } = makeProjectKeys(keys);
  expect(publishable).toMatch(/^sb_publishable_[\w-]{22}_[\w-]{8}$/);
  expect(secret).toMatch(/^sb_secret_[\w-]{22}_[\w-]{8}$/);
  const read = makeProjectKeyReader(keys, SETTINGS);
  expect([publishable, secret].map((key) => jwt.verify(read(key)!, SECRET))).toEqual([
    { iss: "us", role: "web_anon" },
    { iss: "us", role: "service_role" },
  ]);
});

test("the keys are the same in each gateway, and others with another signing key", () => {
  expect(makeProjectKeys(keysOf(SECRET))).toEqual(makeProjectKeys(keysOf(SECRET)));
  const all = [keysOf(SECRET), keysOf(OTHER_SECRET)].flatMap((keys) => Object.values(makeProjectKeys(keys)));
  expect(new Set(all).size).toBe(4);
});

test("keys of a previous secret are valid as long as its tokens, and no longer", () => {
  const { secret } = makeProjectKeys(keysOf(SECRET));
  expect(makeProjectKeyReader(keysOf(OTHER_SECRET, { jwtPreviousSecrets: [SECRET] }), SETTINGS)(secret)).not.toBeNull();
  expect(makeProjectKeyReader(keysOf(OTHER_SECRET), SETTINGS)(secret)).toBeNull();
});

test("a private key has project keys too, which its public half does not tell", () => {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const keys = keysOf(null, { jwtPrivateKey: privateKey.export({ type: "pkcs8", format: "pem" }) });
  const { publishable } = makeProjectKeys(keys);
  expect(makeProjectKeyReader(keys, SETTINGS)(publishable)).not.toBeNull();
});

test.each(["", "sb_", "sb_secret_", "key_abc", "eyJhbGciOiJIUzI1NiJ9.e30.x"])("%j is no project key", (text) => {
  expect(makeProjectKeyReader(keysOf(SECRET), SETTINGS)(text)).toBeNull();
});
