import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { decryptText, encryptText } from "../../../engine/auth/encrypted-text.ts";

test("what is sealed is read with the secret alone", () => {
  const sealed = encryptText('{"a":"é"}', "the secret");
  expect(decryptText(sealed, "the secret")).toBe('{"a":"é"}');
  expect(() => decryptText(sealed, "another secret")).toThrow();
  expect(sealed.toString("latin1")).not.toContain('"a"');
});

test("what was altered or cut off is not read", () => {
  const sealed = encryptText("text", "the secret");
  for (let at = 0; at < sealed.length; at++) {
    const altered = Buffer.from(sealed);
    altered[at]! ^= 1;
    expect(() => decryptText(altered, "the secret")).toThrow();
  }
  expect(() => decryptText(sealed.subarray(0, -1), "the secret")).toThrow();
  expect(() => decryptText(randomBytes(10), "the secret")).toThrow();
});
