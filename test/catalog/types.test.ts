import { beforeAll, describe, expect, test } from "vitest";
import type { Catalog } from "../../catalog/catalog.ts";
import { baseTypeOf, type DataType } from "../../catalog/data-types.ts";
import { useFixture } from "../fixture.ts";
import { makeFixture, tableOf } from "./fixture.ts";

let catalog: Catalog;
const fixture = useFixture(makeFixture);
beforeAll(async () => {
  catalog = await fixture.load();
});

const type = <Kind extends DataType["kind"]>(name: string, _kind: Kind, schema = "api") =>
  catalog.schemas.get(schema)!.types.get(name) as Extract<DataType, { kind: Kind }>;

describe("types", () => {
  test("a schema lists its own types, without arrays and row types of tables", () => {
    expect([...catalog.schemas.get("api")!.types.keys()].sort()).toEqual(
      ["code", "colour", "money_amount", "short_email", "span", "span_multirange", "text/csv"].sort(),
    );
  });

  test("an enum has its values in their order, and its comment", () => {
    expect(type("colour", "enum")).toMatchObject({
      kind: "enum",
      values: ["red", "amber", "green"],
      comment: "Of a traffic light",
      sqlName: "api.colour",
    });
  });

  test("a domain over a domain has each level", () => {
    const domain = type("short_email", "domain");
    expect(domain).toMatchObject({
      kind: "domain",
      notNull: true,
      default: "'nobody@here'::text",
      overSql: "hidden.email",
      checks: [{ name: "short", expression: "(length((VALUE)::text) < 50)" }],
      over: {
        kind: "domain",
        schema: "hidden",
        overSql: "text",
        checks: [{ name: "email_has_at", expression: "(VALUE ~ '@'::text)" }],
      },
    });
    expect(baseTypeOf(domain)).toMatchObject({ kind: "base", name: "text" });
    expect(type("code", "domain")).toMatchObject({ overSql: "character varying(8)", maxLength: 8 });
  });

  test("a composite has attributes, a range its element", () => {
    const { attributes, table } = type("money_amount", "composite");
    expect([...attributes.values()].map(({ name, sqlType }) => [name, sqlType])).toEqual([
      ["amount", "numeric(12,2)"],
      ["currency", "character(3)"],
    ]);
    expect(table).toBeNull();
    expect(type("span", "range")).toMatchObject({ kind: "range", element: { name: "numeric" } });
    expect(type("span_multirange", "multirange")).toMatchObject({ element: { name: "numeric" } });
  });

  test("the row type of a table has the table's columns, also when the table is hidden", () => {
    const returned = (name: string) => baseTypeOf(catalog.schemas.get("api")!.routines.get(name)![0]!.returns.type);
    expect(returned("search")).toMatchObject({ kind: "composite", table: { schema: "api", name: "films" } });
    const films = returned("search") as Extract<DataType, { kind: "composite" }>;
    expect(films.attributes.get("title")).toBe(tableOf(catalog, "films").columns.get("title"));
    const people = returned("people_of") as Extract<DataType, { kind: "composite" }>;
    expect([...people.attributes.keys()]).toEqual(["id", "full_name", "email"]);
  });
});

describe("the types in responses", () => {
  test("implicit casts between a domain and json or text are representations", () => {
    expect(catalog.representations).toEqual([{ source: "api.code", target: "json", function: "api.to_json" }]);
  });

  test("functions and aggregates returning a domain named like a media type handle it", () => {
    const handlers = catalog.mediaHandlers.map(({ mediaType, routine, table }) => [mediaType, routine.name, table]);
    expect(handlers).toContainEqual(["text/csv", "film_csv", null]);
    expect(handlers).toContainEqual(["text/csv", "films_csv", { schema: "api", name: "films" }]);
    expect(handlers).toContainEqual(["application/vnd.twkb", "twkb", null]);
  });
});
