import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { decryptText, encryptText } from "../../accounts/random-secrets.ts";

test("an encrypted text can be decrypted only with its secret", () => {
  const sealed = encryptText('{"a":"é"}', "the secret");
  expect(decryptText(sealed, "the secret")).toBe('{"a":"é"}');
  expect(() => decryptText(sealed, "another secret")).toThrow();
  expect(sealed.toString("latin1")).not.toContain('"a"');
});

test("an altered or truncated text cannot be decrypted", () => {
  const sealed = encryptText("text", "the secret");
  for (let at = 0; at < sealed.length; at++) {
    const altered = Buffer.from(sealed);
    altered[at]! ^= 1;
    expect(() => decryptText(altered, "the secret")).toThrow();
  }
  expect(() => decryptText(sealed.subarray(0, -1), "the secret")).toThrow();
  expect(() => decryptText(randomBytes(10), "the secret")).toThrow();
});
