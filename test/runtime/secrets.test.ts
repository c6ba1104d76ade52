import { randomBytes } from "node:crypto";
import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { decryptBytes, encryptBytes, readOrMakeSecrets } from "../../runtime/secrets.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "secrets-"));
});
afterEach(() => rm(folder, { recursive: true }));

test("secrets are made once and then read", async () => {
  const made = await readOrMakeSecrets(join(folder, "data"));
  expect(made.jwtSecret.length).toBeGreaterThanOrEqual(32);
  expect(await readOrMakeSecrets(join(folder, "data"))).toEqual(made);
});

test("only their owner may read them", async () => {
  await readOrMakeSecrets(folder);
  expect((await stat(join(folder, "secrets.json"))).mode & 0o777).toBe(0o600);
});

test("processes that start together agree, and leave no draft behind", async () => {
  const made = await Promise.all(Array.from({ length: 8 }, () => readOrMakeSecrets(folder)));
  expect(new Set(made.map(({ jwtSecret }) => jwtSecret)).size).toBe(1);
  expect(await readdir(folder)).toEqual(["secrets.json"]);
});

test("two deployments have different secrets", async () => {
  const [one, other] = [await readOrMakeSecrets(join(folder, "1")), await readOrMakeSecrets(join(folder, "2"))];
  expect(one.jwtSecret).not.toBe(other.jwtSecret);
});

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
