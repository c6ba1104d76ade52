import { describe, expect, test } from "vitest";
import { printDocument } from "../../../../rest-gateway/openapi/document/printed-document.ts";
import type { TableDocumentOptions } from "../../../../rest-gateway/openapi/document/visible-schema.ts";
import { makeTableDocument } from "../../../../rest-gateway/openapi/table/document.ts";
import { useFixture } from "../../../fixture.ts";
import { makeFixture } from "../fixture.ts";
import { textOf } from "../text-of.ts";

type Json = { readonly [key: string]: Json } & readonly Json[];

const fixture = useFixture(makeFixture);

async function documentFor(role: string, differently?: Partial<TableDocumentOptions>): Promise<Json> {
  const document = await makeTableDocument(fixture.subject(role, differently));
  return JSON.parse(await textOf(printDocument(document))) as Json;
}

const schemasFor = async (role: string) => (await documentFor(role)).components!.schemas!;
const namesIn = (value: Json | undefined) => Object.keys(value ?? {});

function parametersOf(document: Json, operation: Json): string[] {
  return operation.parameters!.map((parameter) => {
    const { $ref } = parameter as { $ref?: string };
    const meant = $ref ? document.components!.parameters![$ref.replace("#/components/parameters/", "")]! : parameter;
    return String(meant.name);
  });
}

describe("the OpenAPI document", () => {
  test("has the comment of the schema and the URL of the service", async () => {
    expect(await documentFor("user", { serverUrl: "https://api.example.org/rest/v1" })).toMatchObject({
      openapi: "3.1.0",
      info: { title: "The library", description: "Books and\nwho wrote them.", version: "1.2.3" },
      servers: [{ url: "https://api.example.org/rest/v1" }],
    });
    expect((await documentFor("user", { schema: "other" })).info).toMatchObject({ title: "Table interface" });
  });

  test("requires a key, and takes a token, unless requests without a key are accepted", async () => {
    const open = await documentFor("user", { requireApiKey: false });
    expect(open.security).toEqual([{ JWT: [] }, { apikey: [] }, {}]);
    const closed = await documentFor("user");
    expect(closed.security).toEqual([{ apikey: [], JWT: [] }, { apikey: [] }]);
    expect(closed.components!.securitySchemes).toMatchObject({
      apikey: { type: "apiKey", in: "header", name: "apikey" },
      JWT: { type: "http", scheme: "bearer" },
    });
  });

  test("describes a column by its type, null, default, length, comment and keys", async () => {
    const { books, summaries, editions, stock, titles } = await schemasFor("user");
    expect(books!.description).toBe("A book\n\nAs it stands\non the shelf.");
    expect(books!.properties).toEqual({
      id: { type: "integer", format: "int64", description: "Note:\nThis is a Primary Key.<pk/>" },
      writer_id: {
        type: ["integer", "null"],
        format: "int32",
        description: "Who wrote it\n\nNote:\nThis is a Foreign Key to `writers.id`.<fk table='writers' column='id'/>",
      },
      isbn: { type: "string", maxLength: 13, default: "0" },
      title: { type: "string", maxLength: 80, default: "untitled", description: "As on the cover" },
      title_length: { type: ["integer", "null"], format: "int32" },
      genre: { type: ["string", "null"], enum: ["novel", "poetry", null], default: "novel" },
      genres: { type: ["array", "null"], items: { type: ["string", "null"], enum: ["novel", "poetry", null] } },
      tags: { type: "array", items: { type: ["string", "null"] }, default: [] },
      pages: { type: ["integer", "null"], format: "int16" },
      price: { type: ["number", "null"], format: "decimal", default: 9.5 },
      weight: { type: ["number", "null"], format: "double" },
      rating: { type: ["number", "null"], format: "float" },
      in_print: { type: "boolean", default: true },
      published: { type: ["string", "null"], format: "date", default: "1900-01-01" },
      added: { type: "string", format: "date-time" },
      opens: { type: ["string", "null"], format: "time-local" },
      lent: { type: ["string", "null"], format: "interval", default: "14 days" },
      details: { default: {} },
      cover: { type: ["string", "null"], format: "bytea" },
      key: { type: ["string", "null"], format: "uuid" },
      years: { type: ["string", "null"], format: "int4range" },
      shade: {},
      size: {
        type: ["object", "null"],
        properties: {
          width: { type: ["integer", "null"], format: "int32" },
          height: { type: ["integer", "null"], format: "int32" },
        },
      },
      code: { type: ["string", "null"] },
      owner: { type: ["string", "null"] },
      writer_row: expect.objectContaining({ type: ["object", "null"] }),
      first_writer_row: { type: ["object", "null"], properties: {} },
      bits: { type: ["string", "null"], format: "bit", maxLength: 4 },
      padded: { type: ["string", "null"], maxLength: 5, default: "a'b" },
      low: { type: ["integer", "null"], format: "int32", default: -1 },
    });
    expect(summaries!.properties!.book_id!.description).toBe(
      "Note:\nThis is a Primary Key.<pk/>\nThis is a Foreign Key to `books.id`.<fk table='books' column='id'/>",
    );
    expect(editions!.properties!.previous).not.toHaveProperty("description");
    expect(stock!.properties!.shop_id).not.toHaveProperty("description");
    expect(titles!.properties!.writer!.description).toContain("<fk table='writers' column='id'/>");
  });

  test("documents the defaults of a new row in words, since generated clients require properties with a `default`", async () => {
    const schemas = await schemasFor("user");
    const sent = Object.entries(schemas).filter(([name]) => /\.(insert|update)$/.test(name));
    expect(sent.length).toBeGreaterThan(5);
    expect(sent.filter(([, schema]) => JSON.stringify(schema).includes('"default":'))).toEqual([]);
    const { title, in_print } = schemas["books.insert"]!.properties!;
    expect(title!.description).toBe('As on the cover\n\nDefault: `"untitled"`');
    expect(in_print!.description).toBe("Default: `true`");
    expect(schemas["books.update"]!.properties!.title!.description).toBe("As on the cover");
  });

  test("requires the columns of a new row that have no default, through views too", async () => {
    const schemas = await schemasFor("user");
    const requiredIn = (name: string) => schemas[`${name}.insert`]!.required;
    expect(requiredIn("writers")).toEqual(["name"]);
    expect(requiredIn("books")).toBeUndefined();
    expect(requiredIn("summaries")).toEqual(["book_id", "text"]);
    expect(requiredIn("titles")).toBeUndefined();
    expect(requiredIn("members")).toBeUndefined();
    expect(namesIn(schemas["writers.insert"]!.properties)).toEqual(["name", "email", "password"]);
    expect(namesIn(schemas["books.update"]!.properties)).not.toContain("title_length");
    expect(schemas["summaries.update"]!.required).toBeUndefined();
    expect(schemas.summaries!.required).toEqual(["book_id", "text"]);
    expect(schemas.books!.required).toEqual(namesIn(schemas.books!.properties));
  });

  test("lists the operations of a table, and each parameter once", async () => {
    const document = await documentFor("user");
    expect(namesIn(document.paths!["/books"])).toEqual(["get", "post", "put", "patch", "delete"]);
    expect(namesIn(document.paths!["/totals"])).toEqual(["get"]);
    expect(namesIn(document.paths!["/shelf"])).toEqual(["get"]);
    expect(namesIn(document.paths!["/stock"])).toEqual(["get", "post", "patch", "delete"]);
    expect(namesIn(document.paths!["/loans"])).toEqual(["get", "post", "patch", "delete"]);
    expect(document.paths).not.toHaveProperty("/loans_2026");
    expect(parametersOf(document, document.paths!["/summaries"]!.get!)).toEqual([
      ...[
        "book_id",
        "text",
        "and",
        "or",
        "select",
        "order",
        "limit",
        "offset",
        "Range",
        "Range-Unit",
        "Prefer",
        "If-None-Match",
        "search",
        "distinct",
        "having",
        "cursor",
      ],
    ]);
    expect(parametersOf(document, document.paths!["/summaries"]!.put!)).toEqual([
      ...["book_id", "select", "columns", "Prefer", "If-Match", "If-None-Match", "Idempotency-Key"],
    ]);
    const odd = parametersOf(document, document.paths!["/odd%20%22table%22"]!.get!);
    expect(odd.slice(0, 4)).toEqual(["a b", "x/y", "{braces}", "and"]);
    expect(odd.filter((name) => name === "select")).toHaveLength(1);
  });

  test("has every possible status, and the schema of errors", async () => {
    const document = await documentFor("user");
    const { get, post, delete: remove } = document.paths!["/books"]!;
    expect(namesIn(get!.responses)).toEqual(["200", "206", "300", "304", "400", "401", "403", "406", "416", "default"]);
    expect(namesIn(post!.responses)).toEqual([
      ...["200", "201", "300", "400", "401", "403", "406", "409", "413", "422", "default"],
    ]);
    expect(namesIn(remove!.responses)).toEqual([
      ...["200", "204", "300", "400", "401", "403", "406", "409", "412", "422", "default"],
    ]);
    expect(document.components!.schemas!["rest.error"]!.required).toEqual(["code", "message", "details", "hint"]);
    const rows = document.components!.responses!["written.books"]!;
    expect(namesIn(rows.headers)).toEqual(["Content-Range", "Preference-Applied", "ETag", "Location"]);
    expect(namesIn(rows.content)).toEqual([
      "application/json",
      "application/vnd.pgrst.object+json",
      "application/vnd.pgrst.array+json;nulls=stripped",
      "application/vnd.pgrst.object+json;nulls=stripped",
      "text/csv",
    ]);
  });

  test("has the schema header if the schema is not the first one", async () => {
    const first = await documentFor("user");
    expect(parametersOf(first, first.paths!["/books"]!.get!)).not.toContain("Accept-Profile");
    const other = await documentFor("user", { schema: "other" });
    expect(parametersOf(other, other.paths!["/shops"]!.get!)).toContain("Accept-Profile");
    expect(parametersOf(other, other.paths!["/shops"]!.post!)).toContain("Content-Profile");
    expect(other.components!.parameters!.acceptProfile).toMatchObject({ required: true, schema: { const: "other" } });
  });
});

describe("functions in the OpenAPI document", () => {
  test("are called by POST, and by GET if they are not volatile and have named arguments", async () => {
    const { paths } = await documentFor("user");
    const methods = Object.entries(paths!).flatMap(([path, item]) =>
      path.startsWith("/rpc/") ? [[path.slice(5), namesIn(item).join()]] : [],
    );
    expect(Object.fromEntries(methods)).toEqual({
      add: "get,post",
      as_csv: "get,post",
      bounds: "get,post",
      csv_step: "post",
      echo: "post",
      either: "post",
      find: "get,post",
      lend: "post",
      pages: "get,post",
      peek: "get,post",
      read_text: "post",
      secret_of: "get,post",
      whole: "get,post",
    });
  });

  test("have arguments, of all overloads, with the required ones", async () => {
    const { paths } = await documentFor("user");
    const named = (function_: string) => paths![`/rpc/${function_}`]!.get!.parameters!.filter(({ name }) => name);
    expect(named("add")).toEqual([
      {
        name: "a",
        in: "query",
        required: true,
        schema: { anyOf: [{ type: "string" }, { type: "integer", format: "int32" }] },
      },
      { name: "b", in: "query", schema: { type: "integer", format: "int32" } },
    ]);
    expect(named("find").at(-1)).toEqual({
      name: "tags",
      in: "query",
      schema: { type: "array", items: { type: ["string", "null"] } },
    });
    expect(named("as_csv")[0]!.schema).toEqual({ type: "string" });
    expect(named("whole")[0]!.schema).toEqual({ type: "string" });
    expect(paths!["/rpc/find"]!.post!.requestBody).toEqual({
      required: true,
      content: {
        "application/json": {
          schema: {
            type: "object",
            properties: {
              word: { type: ["string", "null"] },
              tags: { type: ["array", "null"], items: { type: ["string", "null"] } },
            },
            required: ["word"],
            additionalProperties: false,
          },
        },
      },
    });
    expect(paths!["/rpc/echo"]!.post!.requestBody!.content).toEqual({ "application/json": { schema: {} } });
    expect(paths!["/rpc/either"]!.post!.requestBody!.content).toEqual({
      "application/json": {
        schema: { anyOf: [expect.objectContaining({ required: ["doc"] }), {}] },
      },
    });
    expect(paths!["/rpc/read_text"]!.post!.requestBody!.content).toEqual({ "text/plain": {} });
    expect(paths!["/rpc/pages"]!.post!.requestBody!.required).toBe(false);
  });

  test("have their results: rows, values, nothing, or a media type of their own", async () => {
    const { paths } = await documentFor("user");
    const answer = (name: string) => paths![`/rpc/${name}`]!.post!.responses!;
    const schemaOf = (name: string) => answer(name)["200"]!.content!["application/json"]!.schema;
    expect(schemaOf("find")).toEqual({ type: "array", items: { $ref: "#/components/schemas/books" } });
    expect(schemaOf("secret_of")).toEqual({ $ref: "#/components/schemas/secrets" });
    expect(schemaOf("add")).toEqual({
      anyOf: [{ type: ["string", "null"] }, { type: ["integer", "null"], format: "int32" }],
    });
    expect(schemaOf("pages")).toMatchObject({ type: "array", items: { properties: { title: {}, pages: {} } } });
    expect(schemaOf("bounds")).toMatchObject({ type: "object", properties: { low: {}, high: {} } });
    expect(answer("as_csv")["200"]!.content).toEqual({ "text/csv": { schema: { type: "string" } } });
    expect(namesIn(answer("lend"))).toContain("204");
    expect(answer("lend")).not.toHaveProperty("200");
    expect(paths!["/rpc/find"]!.get).toMatchObject({ summary: "Find books", description: "By a word of the title." });
  });
});

describe("objects that a role may not use", () => {
  test("are not in its document: tables, columns, methods, functions, and keys to them", async () => {
    const document = await documentFor("anon");
    expect(Object.entries(document.paths!).map(([path, item]) => `${path} ${namesIn(item)}`)).toEqual([
      "/ get,post",
      "/books get",
      "/editions delete",
      "/notes get,post,patch",
      "/stock post",
      "/titles get",
      "/writers get",
      "/rpc/add get,post",
      "/rpc/find get,post",
      "/rpc/peek get,post",
      "/rpc/secret_of get,post",
    ]);
    const schemas = document.components!.schemas!;
    expect(namesIn(schemas.writers!.properties)).toEqual(["id", "name"]);
    expect(namesIn(schemas["notes.insert"]!.properties)).toEqual(["id", "text"]);
    expect(namesIn(schemas["notes.update"]!.properties)).toEqual(["text"]);
    expect(schemas.notes!.properties!.secret_id).not.toHaveProperty("description");
    expect(JSON.stringify(document)).not.toMatch(/password|secrets|hidden/);
  });

  test("are all objects for a role without USAGE on the schema", async () => {
    const document = await documentFor("stranger");
    expect(namesIn(document.paths)).toEqual(["/"]);
    expect(namesIn(document.components!.schemas)).toEqual(["rest.filter", "rest.error"]);
    expect(document.info!.title).toBe("Table interface");
    expect(JSON.stringify(document)).not.toMatch(/books|library/);
  });

  test("are in the document if privileges are ignored", async () => {
    const all = await documentFor("stranger", { mode: "ignore-privileges" });
    expect(namesIn(all.paths)).toEqual(namesIn((await documentFor("user")).paths));
    expect(namesIn(all.components!.schemas!.writers!.properties)).toContain("password");
  });
});
