import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { withClient } from "../../../postgres/client/with-client.ts";
import type { Service } from "../../../service/service.ts";
import { cloneDatabase, type TestDatabase } from "../../database.ts";
import { serve } from "../../serve.ts";
import { type Client, openClient } from "./client.ts";

const RESERVED = ["select", "order", "and", "or", "not.and", "not.or", "limit", "offset", "columns", "on_conflict"];

let database: TestDatabase;
let service: Service;
let client: Client;
beforeAll(async () => {
  database = await cloneDatabase("empty");
  const columns = RESERVED.map((name) => `"${name}" text not null default 'no'`).join(", ");
  await withClient(database.ownerUrl, (owner) =>
    owner.query(`
      create table public.odd (id int primary key, ${columns});
      insert into public.odd (id) values (1), (2);
      grant all on public.odd to anon`),
  );
  service = await serve(database, { REST_REQUIRE_APIKEY: "false" });
  client = openClient(service.url);
});
afterAll(async () => {
  client.close();
  await service.stop();
  await database.drop();
});

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
