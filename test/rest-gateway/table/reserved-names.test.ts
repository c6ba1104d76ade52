import { beforeAll, describe, expect, test } from "vitest";
import { withClient } from "../../../postgres/client/with-client.ts";
import { useDatabase } from "../../database.ts";
import { useFixture } from "../../fixture.ts";
import { useService } from "../../serve.ts";
import { openClient } from "./client.ts";

const RESERVED = ["select", "order", "and", "or", "not.and", "not.or", "limit", "offset", "columns", "on_conflict"];

const database = useDatabase({ template: "empty" });
beforeAll(async () => {
  const columns = RESERVED.map((name) => `"${name}" text not null default 'no'`).join(", ");
  await withClient(database.ownerUrl, (owner) =>
    owner.query(`
      create table public.odd (id int primary key, ${columns});
      insert into public.odd (id) values (1), (2);
      grant all on public.odd to anon`),
  );
});
const service = useService({ database, settings: { REST_REQUIRE_APIKEY: "false" } });
const client = useFixture(() => openClient(service.url));

describe.each(RESERVED)("a column with the name of the parameter %s", (name) => {
  const quoted = encodeURIComponent(`"${name}"`);

  test("is a filter in quotes, for reads and changes", async () => {
    const changed = await client.ask(`/odd?id=eq.2&select=id`, {
      method: "PATCH",
      headers: { Prefer: "return=representation" },
      body: { [name]: "yes" },
    });
    expect(changed).toMatchObject({ status: 200, body: [{ id: 2 }] });
    expect((await client.ask(`/odd?${quoted}=eq.yes&select=id`)).body).toEqual([{ id: 2 }]);
    expect((await client.ask(`/odd?and=(${quoted}.eq.yes,id.gt.0)&select=id`)).body).toEqual([{ id: 2 }]);
    expect((await client.ask(`/odd?select=${quoted}&order=${quoted}.desc&limit=1`)).body).toEqual([{ [name]: "yes" }]);
    const back = await client.ask(`/odd?${quoted}=eq.yes&select=id`, {
      method: "PATCH",
      headers: { Prefer: "return=representation" },
      body: { [name]: "no" },
    });
    expect(back.body).toEqual([{ id: 2 }]);
  });
});
