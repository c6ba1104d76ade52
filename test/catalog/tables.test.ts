import { beforeAll, describe, expect, test } from "vitest";
import type { Catalog } from "../../catalog/catalog.ts";
import { useFixture } from "../fixture.ts";
import { makeFixture, tableOf } from "./fixture.ts";

let catalog: Catalog;
const fixture = useFixture(makeFixture);
beforeAll(async () => {
  catalog = await fixture.load();
});

describe("schemas", () => {
  test("exposed schemas are first and in their order, then the extra search path; hidden ones are absent", () => {
    expect([...catalog.schemas.values()].map(({ name, exposed }) => [name, exposed])).toEqual([
      ["api", true],
      ["Odd Schema", true],
      ["public", false],
      ["extra", false],
    ]);
    expect(catalog.schemas.get("api")?.comment).toBe("What clients see");
    expect(catalog.findTable({ schema: "hidden", name: "people" })).toBeUndefined();
    expect(catalog.findTable({ schema: "Odd Schema", name: 'odd "table"' })?.primaryKey).toEqual(["id"]);
  });
});

describe("tables", () => {
  const can = (name: string) => {
    const { kind, insertable, updatable, deletable } = tableOf(catalog, name);
    return [kind, insertable, updatable, deletable];
  };

  test.each([
    ["films", "table", true, true, true],
    ["events", "partitioned table", true, true, true],
    ["film_titles", "view", true, true, true],
    ["film_credits", "view", false, false, false],
    ["editable", "view", true, false, false],
    ["recent_films", "materialized view", false, false, false],
    ["remote", "foreign table", false, false, false],
  ])("%s is a %s with insert %s, update %s, delete %s", (name, ...expected) => {
    expect(can(name)).toEqual(expected);
  });

  test("partitions are distinguished from partitioned tables", () => {
    expect(tableOf(catalog, "events_2026").isPartition).toBe(true);
    expect(tableOf(catalog, "events")).toMatchObject({ isPartition: false, replicaIdentity: "full" });
  });

  test("row security is off, enabled or forced, and policies are spelled out", () => {
    expect(tableOf(catalog, "actors")).toMatchObject({ rowSecurity: "off", policies: [] });
    expect(tableOf(catalog, "films")).toMatchObject({
      rowSecurity: "enabled",
      policies: [
        {
          name: "read_all",
          command: "select",
          permissive: true,
          roles: ["public"],
          using: "true",
          check: null,
          comment: "Films are public",
        },
        {
          name: "write_own",
          command: "update",
          permissive: false,
          roles: [fixture.role("anon"), fixture.role("user")],
          using: "(director_id = 1)",
          check: "(director_id = 2)",
        },
      ],
    });
    expect(tableOf(catalog, "directors")).toMatchObject({
      rowSecurity: "forced",
      policies: [{ name: "everything", command: "all", roles: [fixture.role("admin")], using: "(name <> ''::text)" }],
    });
  });

  test("a view with security_invoker is marked", () => {
    const invoker = catalog.findTable({ schema: "api", name: "invoker" });
    expect(invoker?.securityInvoker).toBe(catalog.server.version >= 150000 ? true : undefined);
    expect(tableOf(catalog, "film_titles").securityInvoker).toBe(false);
  });
});

describe("columns", () => {
  const column = (table: string, name: string) => tableOf(catalog, table).columns.get(name)!;

  test("are in their order, without dropped ones", () => {
    const { columns } = tableOf(catalog, "films");
    expect([...columns.keys()].slice(-3)).toEqual(["minutes", "sequel_of", 'odd "column"']);
    expect(columns.get("sequel_of")?.position).toBe(14);
  });

  test.each([
    ["id", { sqlType: "bigint", nullable: false, default: null, identity: "by default" }],
    ["title", { sqlType: "character varying(80)", nullable: false, maxLength: 80, comment: "As on the poster" }],
    ["title_length", { default: null, generated: { kind: "stored", expression: "length((title)::text)" } }],
    ["colour", { sqlType: "api.colour", baseType: { kind: "enum", values: ["red", "amber", "green"] } }],
    ["tags", { sqlType: "text[]", default: "'{}'::text[]", type: { kind: "array", element: { name: "text" } } }],
    ["code", { sqlType: "api.code", nullable: true, maxLength: 8, baseType: { name: "varchar" } }],
    ["contact", { nullable: false, default: "'nobody@here'::text", baseType: { name: "text", schema: "pg_catalog" } }],
    ['odd "column"', { sqlType: "bit(3)", maxLength: 3, nullable: true, default: null }],
  ])("%s of films", (name, expected) => {
    expect(column("films", name)).toMatchObject(expected);
  });

  test("an identity is by default or always", () => {
    expect(column("directors", "id").identity).toBe("always");
    expect(column("directors", "name").identity).toBeNull();
  });

  test("an unchanged column of a view refers to the stored column, over several levels and renames", () => {
    expect(column("people", "label").origin).toEqual({
      table: { schema: "hidden", name: "people" },
      column: "full_name",
    });
    expect(column("film_titles", "film").origin).toEqual({ table: { schema: "api", name: "films" }, column: "id" });
    expect(column("film_credits", "shouted :targetList ({").origin).toBeNull();
    expect(column("film_credits", "award").origin).toBeNull();
    expect(column("all_titles", "id").origin).toBeNull();
    expect(column("circle", "id").origin).toBeNull();
  });

  test("a view's column is not null only if the view selects from one table without joins", () => {
    expect(column("film_titles", "film").nullable).toBe(false);
    expect(column("accounts", "owner").nullable).toBe(false);
    expect(column("accounts", "referrer").nullable).toBe(true);
    expect(column("film_credits", "id").nullable).toBe(true);
  });

  test("on Postgres 18, virtual columns are known and a constraint that is not valid guarantees nothing", () => {
    const virtual = tableOf(catalog, "actors").columns.get("shout");
    expect(virtual?.generated?.kind).toBe(catalog.server.version >= 180000 ? "virtual" : undefined);
    expect(column("actors", "name").nullable).toBe(true);
  });
});

describe("keys, indexes and constraints", () => {
  test("the primary key of a view is that of the tables whose key it shows", () => {
    expect(tableOf(catalog, "roles").primaryKey).toEqual(["film_id", "actor_id"]);
    expect(tableOf(catalog, "film_titles").primaryKey).toEqual(["film"]);
    expect(tableOf(catalog, "people").primaryKey).toEqual(["person"]);
    expect(tableOf(catalog, "film_credits").primaryKey).toEqual(["id", "director"]);
    expect(tableOf(catalog, "all_titles").primaryKey).toEqual([]);
  });

  test("unique keys are constraints and indexes on columns, not on expressions", () => {
    const keys = tableOf(catalog, "films").uniqueKeys;
    expect(keys.map(({ name, kind, columns }) => [name, kind, columns])).toEqual([
      ["films_pkey", "primary key", ["id"]],
      ["films_code_red", "index", ["code"]],
      ["films_covering", "index", ["sequel_of"]],
      ["films_title_key", "constraint", ["director_id", "title"]],
    ]);
    expect(keys.find(({ name }) => name === "films_code_red")?.predicate).toBe("(colour = 'red'::api.colour)");
    expect(keys.find(({ name }) => name === "films_title_key")?.deferrable).toBe(true);
    const byName = tableOf(catalog, "directors").uniqueKeys.find(({ name }) => name === "directors_name");
    expect(byName?.nullsDistinct).toBe(catalog.server.version >= 150000 ? false : undefined);
  });

  test("indexes have their method, and null for an expression", () => {
    const indexes = new Map(tableOf(catalog, "films").indexes.map((index) => [index.name, index]));
    expect(indexes.get("films_tags")).toMatchObject({ method: "gin", unique: false, columns: ["tags"] });
    expect(indexes.get("films_lower_title")).toMatchObject({
      method: "btree",
      unique: true,
      columns: [null],
      dependencies: ["title"],
    });
    expect(indexes.get("films_lower_title")?.comment).toBe("Another film has this title.");
  });

  test("checks and exclusions carry their columns, expression and comment", () => {
    expect(tableOf(catalog, "films").checks).toEqual([
      {
        name: "films_minutes",
        kind: "check",
        columns: ["minutes"],
        expression: "(minutes > 0)",
        comment: "Even the shortest film takes a while",
      },
    ]);
    expect(tableOf(catalog, "awards").checks).toMatchObject([{ kind: "exclude", columns: ["year"], expression: null }]);
  });

  test("foreign keys carry their actions", () => {
    expect(tableOf(catalog, "films").foreignKeys.find(({ name }) => name === "films_director")).toEqual({
      name: "films_director",
      columns: ["director_id"],
      target: { schema: "api", name: "directors" },
      targetColumns: ["id"],
      onUpdate: "cascade",
      onDelete: "set null",
      comment: null,
    });
    expect(tableOf(catalog, "films").foreignKeys.map(({ onDelete }) => onDelete)).toContain("cascade");
  });
});
