import { randomUUID } from "node:crypto";
import { afterEach, beforeAll, describe, expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { openResources, type Sent } from "./open-resources.ts";

const TABLES = `
  create table public.shelves (id int primary key, label text not null unique, next_id int references public.shelves deferrable initially deferred);
  create index on public.shelves (next_id);
  create table public.books (
    id int generated always as identity primary key, shelf_id int not null references public.shelves, title text not null, pages numeric
  );
  create index on public.books (shelf_id);
  create function public.repeat(book public.books) returns public.books language sql volatile
    as 'update public.books set title = title || title where id = book.id returning *';
  grant select, insert, update, delete on public.shelves, public.books to authenticated;
  grant execute on function public.repeat(public.books) to authenticated;
  grant select on public.shelves to anon;
  insert into public.shelves values (1, 'top', null);
`;

let ann: number;
const resources = useFixture(() => openResources({ settings: { BATCH_MAX: "5" }, sql: TABLES }));
beforeAll(async () => {
  ann = await resources.addUser();
});
afterEach(() => resources.owner.query("delete from public.books; delete from public.shelves where id > 1"));

type Operation = {
  readonly method: string;
  readonly path: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
};

const sendAnonymously = (operations: readonly Operation[], sent: Sent = {}, path = "/api/v1/batch") =>
  resources.ask(path, { method: "POST", body: { operations }, ...sent });
const send: typeof sendAnonymously = (operations, sent, path) =>
  sendAnonymously(operations, { as: ann, ...sent }, path);
const labels = async () =>
  (await resources.owner.query("select label from public.shelves order by id")).rows.map(({ label }) => label);
const shelf = (id: number, label: string, others: object = {}): Operation => ({
  method: "POST",
  path: "/shelves",
  body: { id, label, ...others },
});

describe("a batch of the resource interface", () => {
  test("runs its operations in order, in one transaction, with references to earlier responses", async () => {
    const { status, headers, body, text } = await send([
      shelf(2, "middle"),
      {
        method: "POST",
        path: ["/shelves/", { $ref: "0#/id" }, "/books"],
        body: [{ title: "A", pages: "12345678901234567890.5" }, { title: { $ref: "0#/label" } }],
      },
      { method: "POST", path: ["/books/", { $ref: "1#/1/id" }, "/repeat"] },
      { method: "GET", path: ["/books?sort=id&fields=title,pages,shelf.label&shelf=", { $ref: "1#/0/shelf_id" }] },
      { method: "DELETE", path: ["/api/v1/books/", { $ref: "1#/1/id" }] },
    ]);
    expect({ status, type: headers.get("content-type") }).toEqual({
      status: 200,
      type: "application/json; charset=utf-8",
    });
    expect(body.data.map((each: { status: number }) => each.status)).toEqual([201, 201, 200, 200, 204]);
    expect(body.data[0]).toMatchObject({
      headers: { Location: "/api/v1/shelves/2" },
      body: { id: 2, label: "middle" },
    });
    expect(body.data[2].body.title).toBe("middlemiddle");
    expect(body.data[3].body.data).toMatchObject([
      { title: "A", shelf: { label: "middle" } },
      { title: "middlemiddle" },
    ]);
    expect(body.data[4].body).toBeNull();
    expect(text).toContain("12345678901234567890.5");
    expect((await resources.owner.query("select title from public.books")).rows).toEqual([{ title: "A" }]);
  });

  test("changes nothing if an operation fails, with its error and its index", async () => {
    const taken = await send([shelf(2, "middle"), shelf(3, "top"), shelf(4, "low")]);
    expect(taken).toMatchObject({ status: 409, body: { error: { code: "RESOURCE_CONFLICT" }, index: 1 } });
    const missing = await send([shelf(2, "middle"), { method: "PATCH", path: "/shelves/99", body: { label: "x" } }]);
    expect(missing).toMatchObject({ status: 404, body: { error: { code: "RESOURCE_NOT_FOUND" }, index: 1 } });
    const unknown = await send([shelf(2, "middle"), { method: "POST", path: "/nowhere", body: {} }]);
    expect(unknown).toMatchObject({ status: 404, body: { index: 1 } });
    const invalid = await send([shelf(2, "middle"), { method: "GET", path: "/shelves?colour=red" }]);
    expect(invalid).toMatchObject({ status: 400, body: { error: { code: "VALIDATION_ERROR" }, index: 1 } });
    const deferred = await send([shelf(2, "middle", { next_id: 77 })]);
    expect(deferred).toMatchObject({ status: 409, body: { error: { code: "RESOURCE_CONFLICT" } } });
    expect(deferred.body).not.toHaveProperty("index");
    expect(await labels()).toEqual(["top"]);
  });

  test("reports the first operation that fails, as it is before later operations", async () => {
    const missing = (method: string): Operation => ({
      method,
      path: "/shelves/2",
      ...(method === "PATCH" && { body: { label: "x" } }),
    });
    const other = { method: "GET", path: "/shelves/2/books" };
    for (const first of [missing("PATCH"), missing("DELETE"), missing("GET"), other]) {
      for (const later of [shelf(2, "middle"), shelf(3, "top")]) {
        expect(await send([first, later])).toMatchObject({
          status: 404,
          body: { error: { code: "RESOURCE_NOT_FOUND" }, index: 0 },
        });
        expect(await send([shelf(4, "low"), first, later])).toMatchObject({ status: 404, body: { index: 1 } });
      }
    }
    expect(
      await send([missing("GET"), shelf(3, "top")], { headers: { "Idempotency-Key": randomUUID() } }),
    ).toMatchObject({ status: 404, body: { index: 0 } });
    expect(await labels()).toEqual(["top"]);
  });

  test("responds to a read as of its own place", async () => {
    const created = { method: "POST", path: "/shelves/2/books", body: { title: "A" } };
    const { status, body } = await send([
      { method: "GET", path: "/shelves/1?links=true" },
      { method: "GET", path: "/shelves/1/books" },
      { method: "DELETE", path: "/shelves/1" },
      shelf(2, "middle"),
      created,
    ]);
    await resources.owner.query("insert into public.shelves values (1, 'top', null)");
    expect(status).toBe(200);
    expect(Object.keys(body.data[0].body._links)).toContain("delete");
    expect(body.data[1].body.data).toEqual([]);
  });

  test("fails with the error that the operation has by itself", async () => {
    const operation = { method: "POST", path: "/shelves", body: { id: 2, label: "top" } };
    const batch = await send([operation]);
    const single = await resources.ask("/api/v1/shelves", { method: "POST", body: operation.body, as: ann });
    const timeless = ({ body: { error } }: typeof batch) => ({ ...error, requestId: "", timestamp: "" });
    expect(batch.status).toBe(single.status);
    expect(timeless(batch)).toEqual(timeless(single));
  });

  test("respects the preconditions of its operations", async () => {
    const { headers } = await resources.ask("/api/v1/shelves/1", { as: ann });
    const change = (tag: string): Operation => ({
      method: "PATCH",
      path: "/shelves/1",
      headers: { "If-Match": tag },
      body: { label: "changed" },
    });
    expect(await send([shelf(2, "middle"), change('"other"')])).toMatchObject({ status: 412, body: { index: 1 } });
    expect(await labels()).toEqual(["top"]);
    const restore = { method: "PATCH", path: "/shelves/1", body: { label: "top" } };
    const { status, body } = await send([change(headers.get("etag")!), restore]);
    expect({ status, label: body.data[0].body.label }).toEqual({ status: 200, label: "changed" });
  });

  test("runs as its caller", async () => {
    expect(await sendAnonymously([shelf(2, "middle")])).toMatchObject({
      status: 401,
      body: { index: 0 },
    });
    const read = await sendAnonymously([{ method: "GET", path: "/shelves/1" }]);
    expect(read).toMatchObject({ status: 200, body: { data: [{ status: 200, body: { label: "top" } }] } });
    const credentials = { method: "GET", path: "/shelves", headers: { Authorization: "Bearer x" } };
    expect(await send([credentials])).toMatchObject({
      status: 400,
      body: { error: { code: "INVALID_BATCH" }, index: 0 },
    });
    expect((await sendAnonymously([shelf(2, "middle")], { headers: { Authorization: "Bearer x" } })).status).toBe(401);
  });

  test("has the version of its address, or of its headers", async () => {
    const create = { method: "POST", path: "/shelves", body: { id: 2, label: "middle", nextId: 1 } };
    const inPath = await send([create], {}, "/api/v2/batch");
    expect(inPath.body.data[0].body).toMatchObject({ id: 2, nextId: 1 });
    await resources.owner.query("delete from public.shelves where id > 1");
    const inHeader = await send([create], { headers: { "X-API-Version": "2" } }, "/api/batch");
    expect(inHeader.body.data[0].body).toMatchObject({ id: 2, nextId: 1 });
    expect(await send([create])).toMatchObject({ status: 400, body: { index: 0 } });
    expect(await send([create], {}, "/api/v9/batch")).toMatchObject({
      status: 400,
      body: { error: { code: "UNSUPPORTED_VERSION" } },
    });
  });

  test("takes effect once under an Idempotency-Key", async () => {
    const sent = { headers: { "Idempotency-Key": randomUUID() } };
    const first = await send([shelf(2, "middle")], sent);
    const again = await send([shelf(2, "middle")], sent);
    expect(first.status).toBe(200);
    expect([again.status, again.text, again.headers.get("idempotent-replayed")]).toEqual([200, first.text, "true"]);
    expect(await labels()).toEqual(["top", "middle"]);
    expect(await send([shelf(3, "low")], sent)).toMatchObject({
      status: 422,
      body: { error: { code: "IDEMPOTENCY_KEY_REUSED" } },
    });
  });

  test("is refused if it is malformed, too long or to be queued", async () => {
    const codeOf = async (body: unknown, headers = {}) => {
      const answer = await resources.ask("/api/v1/batch", { method: "POST", body, as: ann, headers });
      return [answer.status, answer.body.error.code];
    };
    const invalid = [400, "INVALID_BATCH"];
    for (const body of [
      "{",
      "7",
      {},
      { operations: {} },
      { operations: [] },
      { operations: [], others: 1 },
      { operations: [1] },
    ]) {
      expect(await codeOf(body)).toEqual(invalid);
    }
    const many = Array.from({ length: 6 }, () => ({ method: "GET", path: "/shelves" }));
    expect(await codeOf({ operations: many })).toEqual([413, "BATCH_TOO_LARGE"]);
    expect(await codeOf({ operations: many.slice(1) }, { Prefer: "respond-async" })).toEqual(invalid);
    expect(await codeOf({ operations: [{ method: "GET", path: "/Shelves" }] })).toEqual(invalid);
    for (const path of ["/shelves?keyword=\ud800", "/shelves/\udfff", "/shelves?label=\0", "/shelves?label=a\nb"]) {
      expect(await codeOf({ operations: [{ method: "GET", path }] })).toEqual(invalid);
    }
    const header = { method: "GET", path: "/shelves/1", headers: { "If-None-Match": '"a"\r\nX: y' } };
    expect(await codeOf({ operations: [header] })).toEqual(invalid);
    const bytes = { method: "GET", path: "/shelves?keyword=%ED%A0%80" };
    expect(await codeOf({ operations: [bytes] })).toEqual([400, "VALIDATION_ERROR"]);
    expect(await codeOf({ operations: [{ method: "GET", path: "/batch" }] })).toEqual([404, "RESOURCE_NOT_FOUND"]);
    const get = await resources.ask("/api/v1/batch", { as: ann });
    expect([get.status, get.headers.get("allow")]).toEqual([405, "OPTIONS, POST"]);
  });

  test("is accepted as the list itself, and with the media type of lists", async () => {
    const list = [{ method: "GET", path: "/shelves/1?fields=id" }];
    for (const body of [list, { operations: list }]) {
      for (const type of ["application/json", "Application/vnd.Batch+json; charset=utf-8"]) {
        const sent = { method: "POST", body, as: ann, headers: { "Content-Type": type } };
        const answer = await resources.ask("/api/v1/batch", sent);
        expect([answer.status, answer.body.data[0].body]).toEqual([200, { id: 1 }]);
      }
    }
  });

  test("is in the OpenAPI document, with both media types and both forms of the body", async () => {
    const { body } = await resources.ask("/openapi.json", { as: ann });
    expect(Object.keys(body.paths["/api/v1/batch"])).toEqual(["post"]);
    const { required, content } = body.paths["/api/v1/batch"].post.requestBody;
    expect([required, Object.keys(content)]).toEqual([true, ["application/json", "application/vnd.batch+json"]]);
    const list = { $ref: "#/components/schemas/batchOperations" };
    expect(content["application/json"].schema.oneOf).toEqual([
      { type: "object", required: ["operations"], properties: { operations: list } },
      list,
    ]);
    expect(body.components.schemas.batchOperations.items.required).toEqual(["method", "path"]);
  });
});

describe("a table called batch", () => {
  test("keeps its path; a batch then is recognised by its media type", async () => {
    await using opened = new AsyncDisposableStack();
    const other = await openResources({
      template: "empty",
      sql: `create table public.batch (id int primary key);
        grant usage on schema public to anon; grant select, insert on public.batch to anon;`,
    });
    opened.defer(() => other.close());
    const row = await other.ask("/api/v1/batch", { method: "POST", body: { id: 1 } });
    expect([row.status, row.body]).toEqual([201, { id: 1 }]);
    const batch = await other.ask("/api/v1/batch", {
      method: "POST",
      headers: { "Content-Type": "application/vnd.batch+json" },
      body: [
        { method: "POST", path: "/batch", body: { id: 2 } },
        { method: "GET", path: "/batch/1" },
      ],
    });
    expect(batch).toMatchObject({ status: 200, body: { data: [{ body: { id: 2 } }, { body: { id: 1 } }] } });
    const document = await other.ask("/openapi.json");
    expect(Object.keys(document.body.paths["/api/v1/batch"])).toEqual(["get", "post"]);
  });
});
