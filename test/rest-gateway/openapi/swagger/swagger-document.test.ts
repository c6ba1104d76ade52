import { describe, expect, test } from "vitest";
import { printDocument } from "../../../../rest-gateway/openapi/document/printed-document.ts";
import type { TableDocumentOptions } from "../../../../rest-gateway/openapi/document/visible-schema.ts";
import { makeSwaggerDocument } from "../../../../rest-gateway/openapi/swagger/document.ts";
import { useFixture } from "../../../fixture.ts";
import { makeFixture } from "../fixture.ts";
import { textOf } from "../text-of.ts";

const fixture = useFixture(makeFixture);

async function documentFor(role: string, differently?: Partial<TableDocumentOptions>) {
  const document = await makeSwaggerDocument(fixture.subject(role, differently));
  return JSON.parse(await textOf(printDocument(document)));
}

// The test postgrest.test.ts compares it with PostgREST's in every detail; this one needs no PostgREST.
describe("the Swagger document", () => {
  test("describes columns by the names of their SQL types, and keys by notes", async () => {
    const { definitions } = await documentFor("user");
    const { id, writer_id, title, genre, genres, details, added, price } = definitions.books.properties;
    expect(id).toEqual({ type: "integer", format: "int64", description: "Note:\nThis is a Primary Key.<pk/>" });
    expect(writer_id.description).toBe(
      "Who wrote it\n\nNote:\nThis is a Foreign Key to `writers.id`.<fk table='writers' column='id'/>",
    );
    expect(title).toMatchObject({ format: "character varying", maxLength: 80, default: "untitled" });
    expect(genre).toEqual({ type: "string", format: "api.genre", enum: ["novel", "poetry"], default: "novel" });
    expect(genres).toEqual({ type: "array", format: "api.genre[]", items: { type: "string" } });
    expect(details).toEqual({ format: "jsonb" });
    expect(added.default).toBe("now()");
    expect(price).toEqual({ type: "number", format: "numeric", default: 9.5 });
    expect(definitions.books.required).toEqual(["id", "isbn", "title", "tags", "in_print", "added"]);
  });

  test("describes the overload of a function with the most arguments", async () => {
    const { paths } = await documentFor("user");
    expect(paths["/rpc/add"].get.parameters.map(({ name }: { name: string }) => name)).toEqual(["a", "b"]);
    expect(paths["/rpc/lend"]).not.toHaveProperty("get");
    expect(paths["/rpc/find"].get.parameters[1]).toEqual({
      name: "tags",
      in: "query",
      required: false,
      type: "array",
      items: { type: "string", format: "text" },
      collectionFormat: "multi",
    });
  });

  test("contains only objects that the role may use", async () => {
    const document = await documentFor("anon");
    expect(Object.keys(document.definitions)).toEqual(["books", "editions", "notes", "stock", "titles", "writers"]);
    expect(Object.keys(document.definitions.writers.properties)).toEqual(["id", "name"]);
    expect(document.definitions.books.properties.code.default).toBe("(expression)");
    expect(document.definitions.books.properties.owner.default).toContain("current_setting");
    expect(document.definitions.books.properties.first_writer_row.format).toBe("record");
    expect(JSON.stringify(document)).not.toMatch(/password|secrets|hidden/);
    expect((await documentFor("stranger")).definitions).toEqual({});
  });

  test("requires a token only if configured", async () => {
    expect(await documentFor("user")).not.toHaveProperty("security");
    const { security, securityDefinitions } = await documentFor("user", { securityActive: true });
    expect(security).toEqual([{ JWT: [] }]);
    expect(securityDefinitions.JWT).toMatchObject({ type: "apiKey", in: "header", name: "Authorization" });
  });
});
