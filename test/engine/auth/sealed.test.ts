import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { seal, unseal } from "../../../engine/auth/sealed.ts";

test("what is sealed is read with the secret alone", () => {
  const sealed = seal('{"a":"é"}', "the secret");
  expect(unseal(sealed, "the secret")).toBe('{"a":"é"}');
  expect(() => unseal(sealed, "another secret")).toThrow();
  expect(sealed.toString("latin1")).not.toContain('"a"');
});

test("what was altered or cut off is not read", () => {
  const sealed = seal("text", "the secret");
  for (let at = 0; at < sealed.length; at++) {
    const altered = Buffer.from(sealed);
    altered[at]! ^= 1;
    expect(() => unseal(altered, "the secret")).toThrow();
  }
  expect(() => unseal(sealed.subarray(0, -1), "the secret")).toThrow();
  expect(() => unseal(randomBytes(10), "the secret")).toThrow();
});
