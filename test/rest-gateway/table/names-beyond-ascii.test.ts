import { expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { useService } from "../../serve.ts";
import { openClient } from "./client.ts";

const SCHEMA = `
  create schema "тест";
  create table "тест"."книги" ("номер" int primary key, title text);
  insert into "тест"."книги" values (1, 'Идиот');
  create function "тест"."отчёт"() returns json language plpgsql stable as $$
  begin
    perform set_config('response.headers', '[{"Content-Disposition": "attachment; filename=отчёт-é.json"}]', true);
    return '{}';
  end $$;
  create schema "été";
  create table "été".jours (id int primary key);
  insert into "été".jours values (7);
  grant usage on schema "тест", "été" to anon;
  grant all on "тест"."книги", "été".jours to anon`;

const service = useService({ template: "empty", sql: SCHEMA, settings: { PGRST_DB_SCHEMAS: "тест,été" } });
const client = useFixture(() => openClient(service.url));

/** Node reads and writes a header byte by byte. */
const inBytes = (text: string) => Buffer.from(text).toString("latin1");
const readBytes = (text: unknown) => Buffer.from(String(text), "latin1").toString();

test("a response names its schema in UTF-8", async () => {
  const response = await client.ask("/книги");
  expect(response).toMatchObject({ status: 200, body: [{ номер: 1, title: "Идиот" }] });
  expect(readBytes(response.headers["content-profile"])).toBe("тест");
});

test.each([
  ["Swagger 2.0, which has names as they are,", "*/*", "/книги"],
  [
    "OpenAPI 3.1, which has them as in addresses,",
    "application/vnd.oai.openapi+json",
    `/${encodeURIComponent("книги")}`,
  ],
])("the OpenAPI document in %s names it in UTF-8 too", async (_format, accept, path) => {
  const response = await client.ask("/", { headers: { Accept: accept } });
  expect(response.body.paths).toHaveProperty([path]);
  expect(readBytes(response.headers["content-profile"])).toBe("тест");
});

test.each([
  ["тест", "/книги", "тест"],
  ["été", "/jours", "été"],
])("a client may name the schema %s in UTF-8", async (schema, path, named) => {
  const response = await client.ask(path, { headers: { "Accept-Profile": inBytes(schema) } });
  expect(response.status).toBe(200);
  expect(readBytes(response.headers["content-profile"])).toBe(named);
});

test("and in Latin-1, as browsers do if they can", async () => {
  const response = await client.ask("/jours", { headers: { "Accept-Profile": "été" } });
  expect(response).toMatchObject({ status: 200, body: [{ id: 7 }] });
});

test("an unknown name is returned in the error as the client wrote it", async () => {
  const response = await client.ask("/jours", { headers: { "Accept-Profile": inBytes("лето") } });
  expect(response).toMatchObject({ status: 406, body: { code: "PGRST106", message: "Invalid schema: лето" } });
});

test("a row that was inserted has its location, and its schema", async () => {
  const response = await client.ask("/книги", {
    method: "POST",
    body: Buffer.from('{"номер": 2}'),
    headers: { "Content-Profile": inBytes("тест"), Prefer: "return=headers-only" },
  });
  expect(response.status).toBe(201);
  expect(decodeURIComponent(response.headers.location!)).toBe("/книги?номер=eq.2");
});

test("a header that SQL sets is UTF-8, whatever the body is", async () => {
  for (const method of ["GET", "HEAD", "POST"]) {
    const response = await client.ask("/rpc/отчёт", { method, ...(method === "POST" && { body: {} }) });
    expect(response.status).toBe(200);
    expect(readBytes(response.headers["content-disposition"])).toBe("attachment; filename=отчёт-é.json");
  }
});
