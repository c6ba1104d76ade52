import { afterAll, beforeAll, expect, test } from "vitest";
import WebSocket from "ws";
import { readConfig } from "../../../config/config.ts";
import { type RecordedRequest, readRecordedRequests } from "../../../operations/contract/recorded-requests.ts";
import { withClient } from "../../../postgres/client/with-client.ts";
import { checkContractOf } from "../../../service/database-contract.ts";
import type { Service } from "../../../service/service.ts";
import { cloneDatabase, type TestDatabase } from "../../database.ts";
import { tokenFor } from "../../graphql.ts";
import { SHOP } from "../../operations/contract/changed-contracts.ts";
import { ROWS } from "../../operations/contract/recorded-clients.ts";
import { serve } from "../../serve.ts";

const SETTINGS = {
  PGRST_DB_SCHEMAS: "shop",
  PGRST_DB_AGGREGATES_ENABLED: "true",
  REST_REQUIRE_APIKEY: "false",
  BASE_SCHEMA: "platform",
};
const [TEXT, UUID, NUMBER] = ["hidden", "7d9f1c3e-5b2a-4c8d-9e0f-a1b2c3d4e5f6", 918273645];
const MORE = `
  create table shop.notes (id int primary key, owner uuid, data jsonb, words tsvector, at timestamptz);
  create function shop.save(jsonb) returns jsonb stable language sql as $$ select $1 $$;
  grant all on shop.notes to service_role;
  grant execute on function shop.save to service_role`;

let database: TestDatabase;
beforeAll(async () => {
  database = await cloneDatabase("platform");
  await withClient(database.ownerUrl, (client) => client.query(`${SHOP}; ${ROWS}; ${MORE}`));
});
afterAll(() => database.drop());

const read = () => withClient(database.ownerUrl, readRecordedRequests);

async function send(service: Service, method: string, path: string, body?: unknown, headers = {}): Promise<void> {
  const response = await fetch(`${service.url}${path}`, {
    method,
    headers: {
      Authorization: `Bearer ${tokenFor(1, { role: "service_role" })}`,
      "Content-Type": "application/json",
      "X-Own": `${TEXT}-header`,
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  expect([method, path, response.ok, text.includes('"errors"') ? text : ""]).toEqual([method, path, true, ""]);
}

const query = (service: Service, text: string, variables?: object) =>
  send(service, "POST", "/graphql", { query: text, variables });

test("no value of a request is stored", async () => {
  const service = await serve(database, SETTINGS);
  const rest = (path: string) => send(service, "GET", `/rest/v1/${path}`);
  await rest(`items?title=eq.${TEXT}&price=gt.${NUMBER}&select=id,${TEXT}:title&limit=${NUMBER}&offset=0`);
  await rest(`items?or=(title.ilike.*${TEXT}*,sku.in.(${TEXT},other))&order=title`);
  await rest(`notes?owner=eq.${UUID}&select=data->${TEXT}->>0&data->>${TEXT}=eq.${TEXT}`);
  await rest(`notes?words=fts(english).${TEXT}`);
  await rest(`makers?select=${TEXT}:items(title)&${TEXT}.title=like.${TEXT}*&${TEXT}.limit=1`);
  await rest(`makers?select=id,${TEXT}:items.count()&order=${TEXT}`);
  await rest(`makers?select=id,${TEXT}:items()&order=${TEXT}.count`);
  await rest(`makers?select=id,inner:items(${TEXT}:price.sum())&inner.order=${TEXT}`);
  await rest(`items?select=colour,${TEXT}:price.sum()&order=${TEXT}.desc`);
  await rest(`items?select=id,${TEXT}:makers(${TEXT}2:name)&order=${TEXT}(${TEXT}2)`);
  await rest(`items?select=id,...makers(${TEXT}:name)&order=makers(${TEXT})`);
  await rest("makers?select=country:name,items(country:title)&order=country");
  await rest(`rpc/find_items?part=${TEXT}&most=${NUMBER}`);
  await send(service, "POST", "/rest/v1/rpc/save", { [TEXT]: TEXT, list: [NUMBER] });
  await send(service, "POST", "/rest/v1/notes", { id: NUMBER, owner: UUID, data: { [TEXT]: TEXT } });
  await send(service, "POST", "/rest/v1/rpc/find_items", { part: TEXT });
  await send(service, "PATCH", `/rest/v1/items?sku=eq.${TEXT}`, { title: TEXT, stock: NUMBER });
  await send(service, "DELETE", `/rest/v1/notes?id=eq.${NUMBER}`);
  await send(service, "POST", "/api/v1/makers", { id: NUMBER, name: TEXT });
  await send(service, "GET", `/api/v1/makers/${NUMBER}`);
  await send(service, "GET", `/api/v1/makers/${NUMBER}/items?title=${TEXT}`);
  await send(service, "PATCH", `/api/v1/makers/${NUMBER}`, { name: `${TEXT}2` });
  await query(
    service,
    `{ ${TEXT}: items(sku: "${TEXT}", first: ${NUMBER % 1000}) { edges { ${TEXT}2: node { id } } } }`,
  );
  await query(
    service,
    `query ${TEXT}Find($${TEXT}: String!, $most: Int = ${NUMBER}) { findItems(part: $${TEXT}, most: $most) { id } }`,
    { [TEXT]: `${TEXT}%` },
  );
  await query(
    service,
    `query ${TEXT}List { items { edges { node { ...${TEXT}Item } } } }
     fragment ${TEXT}Item on Item { id maker { ...${TEXT}Maker } }
     "${TEXT}" fragment ${TEXT}Maker on Maker { name }`,
  );
  await query(service, "{ items(orderBy: [{ price: ASC }]) { edges { node { id } } } }");
  await query(
    service,
    "query ($order: [ItemOrderByInput!] = [{ stock: ASC }]) { items(orderBy: $order) { edges { node { id } } } }",
  );
  await query(service, `mutation { createItem(input: { title: "${TEXT}", colour: green }) { id } }`);
  await query(service, "mutation ($input: CreateMakerInput!) { createMaker(input: $input) { id } }", {
    input: { id: String(NUMBER + 1), name: TEXT },
  });
  await subscribe(service);
  await service.stop();

  const recorded = (await read())!;
  expect(new Set(recorded.map((each) => each.interface))).toEqual(
    new Set(["table", "resource", "graphql", "realtime"]),
  );
  const values = [
    TEXT,
    UUID,
    String(NUMBER),
    String(NUMBER + 1),
    "GREEN",
    "ASC",
    "english",
    "other",
    `"${NUMBER % 1000}"`,
  ];

  const holds = (each: object) => values.some((value) => JSON.stringify(each).includes(value));
  expect(recorded.filter(holds)).toEqual([]);
  expect(await findRefusals(recorded)).toEqual([]);
  expect(recorded.map(({ request }) => request)).toEqual(
    expect.arrayContaining([
      "GET /rest/v1/items?select=id,title&title=eq&price=gt",
      "GET /rest/v1/makers?select=items(title)&title=like",
      "POST /rest/v1/notes {data, id, owner}",
      "GET /api/v1/makers/{key}/items?maker=eq&title=eq&order=id",
      "query { findItems }",
      "* notes(id)",
    ]),
  );
  expect(recorded.map(({ operation }) => operation)).toEqual(
    expect.arrayContaining([
      "{items{edges{node{...f1}}}}fragment f1 on Item{id maker{...f2}}fragment f2 on Maker{name}",
      "query($v1:SortDirection!){items(orderBy:[{price:$v1}]){edges{node{id}}}}",
      "query($v1:SortDirection!){items(orderBy:[{stock:$v1}]){edges{node{id}}}}",
      "mutation($v1:String!$v2:Colour!){createItem(input:{title:$v1 colour:$v2}){id}}",
    ]),
  );
});

/** Nothing has changed, so none would be refused. */
async function findRefusals(recorded: readonly RecordedRequest[]): Promise<string[]> {
  const { config } = readConfig({ ...SETTINGS, JWT_SECRET: "x".repeat(32) });
  const { refusals } = await checkContractOf(database.ownerUrl, database.url, config, recorded);
  return refusals.flatMap((refusal, index) => (refusal === null ? [] : [`${recorded[index]!.request}: ${refusal}`]));
}

async function subscribe(service: Service): Promise<void> {
  const token = tokenFor(1, { role: "service_role" });
  const socket = new WebSocket(`${service.url.replace("http", "ws")}/realtime/v1/websocket?apikey=${token}&vsn=1.0.0`);
  await new Promise((resolve) => socket.on("open", resolve));
  const joined = new Promise((resolve) => socket.on("message", resolve));
  const changes = [{ event: "*", schema: "shop", table: "notes", filter: `id=eq.${NUMBER}` }];
  const payload = { config: { postgres_changes: changes }, access_token: token };
  socket.send(JSON.stringify({ topic: `realtime:${TEXT}`, event: "phx_join", ref: "1", join_ref: "1", payload }));
  await joined;
  socket.close();
}

test("what several gateways count is added up, in the last hour", async () => {
  const count = async () => (await read())!.find(({ request }) => request.includes("/cheap?"))?.requests ?? 0;
  for (const _ of ["first", "second"]) {
    const service = await serve(database, SETTINGS);
    for (let sent = 0; sent < 3; sent++) await send(service, "GET", `/rest/v1/cheap?price=lt.${sent}`);
    await service.stop();
  }
  expect(await count()).toBe(6);
  const earlier = "update content_service.recorded_request_counts set period = now() - interval '2 hours'";
  await withClient(database.ownerUrl, (client) => client.query(earlier));
  expect(await read()).toBeNull();
});

test("no more shapes are kept than the bound says", async () => {
  const bound = "update content_service.bounds set bound = 2 where name = 'rows of content_service.recorded_requests'";
  await withClient(database.ownerUrl, (client) => client.query(bound));
  const service = await serve(database, SETTINGS);
  for (const column of ["id", "name", "country"]) await send(service, "GET", `/rest/v1/makers?select=${column}`);
  await service.stop();
  expect(await read()).toHaveLength(2);
  const clear = "delete from content_service.recorded_requests";
  await withClient(database.ownerUrl, (client) => client.query(clear));
});

test("nothing is recorded with RECORD_REQUESTS=false", async () => {
  const service = await serve(database, { ...SETTINGS, RECORD_REQUESTS: "false" });
  await send(service, "GET", "/rest/v1/makers?select=name");
  await service.stop();
  expect(await read()).toBeNull();
});

test.each(["anon", "authenticated", "admin", "service_role"])(
  "%s may neither report requests nor read them",
  async (role) => {
    await withClient(database.ownerUrl, async (client) => {
      await client.query(`set role ${role}`);
      for (const sql of [
        "select content_service.record_requests('{}', '{}', '{}')",
        "select from content_service.recorded_requests",
        "select from content_service.recorded_request_counts",
      ])
        await expect(client.query(sql)).rejects.toThrow("permission denied");
    });
  },
);
