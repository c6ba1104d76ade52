import type pg from "pg";
import { expect, test } from "vitest";
import { withClient } from "../../../postgres/client/with-client.ts";
import { makeOwnerFunction } from "../../../postgres/database/owner-pool.ts";
import { useDatabase } from "../../database.ts";

const database = useDatabase({
  template: "empty",
  sql: `
      create function public.closed(int) returns int language sql return $1;
      revoke execute on function public.closed from public;
    `,
});

function question(url: string, text: string) {
  const warnings: unknown[] = [];
  const log = { warn: (warning: unknown) => void warnings.push(warning) };
  const asOwner = <T>(work: (client: pg.ClientBase) => Promise<T>) => withClient(url, work);
  return { warnings, ask: makeOwnerFunction({ asOwner, text, log, warning: "not the owner" }) };
}

test("returns rows", async () => {
  const { ask } = question(database.ownerUrl, "select public.closed($1) as answer");
  expect(await ask([7])).toEqual([{ answer: 7 }]);
});

test("that fails has no rows, and missing privileges are logged once", async () => {
  const missing = question(database.ownerUrl, "select nowhere.nothing($1)");
  expect(await missing.ask([7])).toEqual([]);
  expect(missing.warnings).toEqual([]);
  const refused = question(database.url, "select public.closed($1)");
  expect([await refused.ask([7]), await refused.ask([7])]).toEqual([[], []]);
  expect(refused.warnings).toEqual(["not the owner"]);
});

test("that fails for another reason throws", async () => {
  const { ask } = question(database.ownerUrl, "select 1 / $1::int");
  await expect(ask([0])).rejects.toMatchObject({ code: "22012" });
});
