import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { decryptBytes, encryptBytes } from "../../runtime/secrets.ts";

const key = randomBytes(32);

test("parts are encrypted together and decrypted to the same bytes", () => {
  const sealed = encryptBytes(["é\n", Buffer.from([0, 255])], key);
  expect(decryptBytes(sealed, key)).toEqual(Buffer.concat([Buffer.from("é\n"), Buffer.from([0, 255])]));
  expect(encryptBytes(["é\n", Buffer.from([0, 255])], key)).not.toEqual(sealed);
});

test("another key decrypts nothing, and a truncated tag is refused", () => {
  const sealed = encryptBytes(["text"], key);
  expect(() => decryptBytes(sealed, randomBytes(32))).toThrow();
  for (const length of [1, 4, 15]) expect(() => decryptBytes(sealed.subarray(0, -length), key)).toThrow();
});
