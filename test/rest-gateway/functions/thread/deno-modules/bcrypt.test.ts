import { expect, test } from "vitest";
import * as bcrypt from "../../../../../rest-gateway/functions/thread/deno-modules/bcrypt.ts";

test("hashes are verified, with the rounds of the salt", async () => {
  const salt = await bcrypt.genSalt(4);
  const hashed = await bcrypt.hash("a password", salt);
  expect(hashed).toMatch(/^\$2y\$04\$/);
  expect(await Promise.all(["a password", "another"].map((text) => bcrypt.compare(text, hashed)))).toEqual([
    true,
    false,
  ]);
});

test("the functions that wait do the same", () => {
  const hashed = bcrypt.hashSync("a password", bcrypt.genSaltSync(4));
  expect([bcrypt.compareSync("a password", hashed), bcrypt.compareSync("another", hashed)]).toEqual([true, false]);
});
