import { generateKeyPairSync } from "node:crypto";
import { describe, expect, test } from "vitest";
import { decryptSecret, encryptSecret } from "../../../accounts/federation/providers.ts";
import { makeTokenKeys } from "../../../accounts/identity/token-keys.ts";

const SECRET = "a secret of the client";
const shared = (jwtSecret: string, jwtPreviousSecrets: string[] = []) =>
  makeTokenKeys({ jwtSecret, jwtPreviousSecrets, jwtSecretIsBase64: false, jwtPrivateKey: null });
const rsa = () => {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const jwtPrivateKey = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
  return makeTokenKeys({ jwtSecret: null, jwtSecretIsBase64: false, jwtPrivateKey });
};
const [old, young] = ["an old secret of the deployment", "a young secret of the deployment"];

describe("a provider's secret", () => {
  test.each([
    ["a shared secret", shared(old)],
    ["an RSA key", rsa()],
  ])("is sealed by %s, and opened by it alone", (_what, keys) => {
    const sealed = encryptSecret(SECRET, keys);
    expect(sealed).not.toContain(SECRET);
    expect(encryptSecret(SECRET, keys)).not.toBe(sealed);
    expect(decryptSecret(sealed, keys)).toBe(SECRET);
    for (const others of [shared(young), rsa()]) expect(() => decryptSecret(sealed, others)).toThrow("add it again");
  });

  test("can be decrypted after a key rotation with the previous key", () => {
    expect(decryptSecret(encryptSecret(SECRET, shared(old)), shared(young, [old]))).toBe(SECRET);
  });

  test("may be stored as plain text by SQL", () => {
    expect(decryptSecret(SECRET, shared(old))).toBe(SECRET);
  });
});
