import { expect, test } from "vitest";
import WebSocket from "ws";
import { readConfig } from "../../../config/config.ts";
import { RequestRecorder } from "../../../http/observability/request-recorder.ts";
import { type RecordedRequest, readRecordedRequests } from "../../../operations/contract/recorded-requests.ts";
import { withClient } from "../../../postgres/client/with-client.ts";
import type { AsOwner } from "../../../postgres/database/owner-pool.ts";
import { Supervisor } from "../../../runtime/concurrency/supervisor.ts";
import { checkContractOf } from "../../../service/contract/database-contract.ts";
import type { Service } from "../../../service/wiring/service.ts";
import { urlOf, useDatabase } from "../../database.ts";
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

const database = useDatabase({ template: "platform", sql: `${SHOP}; ${ROWS}; ${MORE}` });

const clear = () =>
  withClient(database.ownerUrl, (client) => client.query("delete from content_service.recorded_requests"));
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

test("no more shapes are kept than the bound says, and the rarest are counted as others", async () => {
  const setBound = (bound: number) =>
    withClient(database.ownerUrl, (client) =>
      client.query(
        "update content_service.bounds set bound = $1 where name = 'rows of content_service.recorded_requests'",
        [bound],
      ),
    );
  await setBound(2);
  const service = await serve(database, SETTINGS);
  for (const column of ["name", "id", "country", "name", "country"])
    await send(service, "GET", `/rest/v1/makers?select=${column}`);
  await send(service, "GET", `/api/v1/makers?fields=id`);
  await service.stop();
  const counts = (await read())!.map(({ request, requests }) => [request, requests]);
  expect(new Map(counts as [string, number][])).toEqual(
    new Map([
      ["GET /rest/v1/makers?select=name", 2],
      ["GET /rest/v1/makers?select=country", 2],
      ["requests of the table interface without a shape", 1],
      ["requests of the resource interface without a shape", 1],
    ]),
  );
  await setBound(2_000);
  await clear();
});

test("a request whose shape is too long is counted as one of the others of its interface", async () => {
  const service = await serve(database, SETTINGS);
  const select = Array.from({ length: 300 }, (_, index) => `column${index}:name`).join(",");
  for (const id of [1, 2]) await send(service, "GET", `/rest/v1/makers?id=eq.${id}&select=${select}`);
  await service.stop();
  expect(await read()).toEqual([
    expect.objectContaining({ interface: "table", others: true, requests: 2, relations: {}, functions: {} }),
  ]);
  await clear();
});

/** Repeats its work at once when it is requested. */
class RequestedReports extends Supervisor {
  readonly works: (() => Promise<unknown>)[] = [];

  override repeat(...[name, work, options]: Parameters<Supervisor["repeat"]>) {
    this.works.push(work);
    return super.repeat(name, work, options);
  }

  async reportNow(): Promise<void> {
    for (const work of this.works) await work();
  }
}

function openRecorder() {
  const warnings: { err: { code: string } }[] = [];
  const log = { info: () => {}, warn: (fields: unknown) => void warnings.push(fields as never) } as never;
  const supervisor = new RequestedReports({ log });
  const recorder = new RequestRecorder();
  const asOwner: AsOwner = (work) => withClient(database.ownerUrl, work);
  const close = recorder.start({ config: { recordRequests: true }, asOwner, supervisor, log });
  const count = (plan: object, request: string) =>
    recorder.count("table", plan, "anon", () => {
      return { interface: "table", role: "anon", request, relations: {}, functions: {} };
    });
  return { warnings, supervisor, count, close };
}

test("plans of one shape are reported together, also when it was forgotten in between", async () => {
  const { warnings, supervisor, count, close } = openRecorder();
  const [first, second] = [{}, {}];
  // These requests keep it from being the rarest.
  for (let sent = 0; sent < 2; sent++) count(first, "one");
  for (let round = 0; round < 4; round++) {
    await supervisor.reportNow();
    for (let index = 0; index < 1000; index++) count({}, `${round} ${index} ${"x".repeat(2_000)}`);
  }
  await supervisor.reportNow();
  count(first, "one");
  count(second, "one");
  await close();
  expect(warnings).toEqual([]);
  expect((await read())!.find(({ request }) => request === "one")?.requests).toBe(4);
  await withClient(database.ownerUrl, async (client) => {
    await client.query(`select content_service.record_requests(array['{"a": 1}', '{"a":1}']::jsonb[], '{2,3}')`);
    const { rows } = await client.query(`select requests::int from content_service.recorded_request_counts
      join content_service.recorded_requests on id = request_id where shape = '{"a": 1}'`);
    expect(rows).toEqual([{ requests: 5 }]);
  });
  await clear();
});

test("a database that takes no writes is no fault: what was counted is added to the others afterwards", async () => {
  const { warnings, supervisor, count, close } = openRecorder();
  const inRoot = (text: string) => withClient(urlOf("postgres", "postgres"), (client) => client.query(text));
  await inRoot(`alter database ${database.name} set default_transaction_read_only = on`);
  for (let minute = 0; minute < 2; minute++) {
    count({}, "one");
    await supervisor.reportNow();
  }
  expect(warnings.map(({ err }) => err.code)).toEqual(["25006"]);
  expect(supervisor.stopped()).toEqual([]);
  await inRoot(`alter database ${database.name} reset default_transaction_read_only`);
  count({}, "one");
  await close();
  expect((await read())!.map(({ request, requests }) => [request, requests])).toEqual([
    ["requests of the table interface without a shape", 2],
    ["one", 1],
  ]);
  await clear();
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
        "select content_service.record_requests('{}', '{}')",
        "select from content_service.recorded_requests",
        "select from content_service.recorded_request_counts",
      ])
        await expect(client.query(sql)).rejects.toThrow("permission denied");
    });
  },
);
