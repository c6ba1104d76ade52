import pg from "pg";
import { expect, test } from "vitest";
import { hintOf } from "../../../postgres/client/error-hints.ts";

const refusal = (message: string, properties: Partial<pg.DatabaseError>) =>
  Object.assign(new pg.DatabaseError(message, 0, "error"), properties);

test("a column that Postgres refuses because of a function's body has a hint that says what to do", () => {
  const message = 'cannot alter table "users" because function auth.is_disabled(auth.users) uses its row type';
  expect(hintOf(refusal(message, { code: "0A000" }))).toMatch(/string body.*doctor/);
  expect(hintOf(refusal(message, { code: "0A000", hint: "Own." }))).toBe("Own.");
  expect(hintOf(refusal('cannot alter table "a" because column "b.c" uses its row type', { code: "0A000" }))).toBe(
    undefined,
  );
});
