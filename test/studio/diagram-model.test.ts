import { describe, expect, test } from "vitest";
import type {
  DatabaseDescription,
  DescribedColumn,
  DescribedForeignKey,
  DescribedTable,
} from "../../studio/api/catalog.ts";
import {
  boundsOf,
  chooseTables,
  footPath,
  linkEnds,
  linkPath,
  targetPath,
  toDiagram,
} from "../../studio/schema/diagram-model.ts";
import { routeLink } from "../../studio/schema/link-route.ts";

type Sketch = {
  readonly schema?: string;
  readonly columns: readonly string[];
  readonly key?: readonly string[];
  readonly unique?: readonly string[];
  readonly refers?: readonly (readonly [columns: readonly string[], table: string, targets: readonly string[]])[];
  readonly kind?: DescribedTable["kind"];
  readonly bound?: string;
};

/** A column whose name ends with `?` is nullable. */
function tableOf(name: string, sketch: Sketch): DescribedTable {
  const { schema = "public", key = [], unique = [], refers = [], kind = "table", bound = null } = sketch;
  const columns = sketch.columns.map(
    (column) => ({ name: column.replace("?", ""), type: "int", nullable: column.endsWith("?") }) as DescribedColumn,
  );
  const foreign_keys = refers.map(
    ([own, table, targets], index) =>
      ({
        name: `fk${index}`,
        columns: own,
        target: { schema, name: table },
        target_columns: targets,
      }) as DescribedForeignKey,
  );
  const indexes = [key, unique]
    .filter((each) => each.length > 0)
    .map((each) => ({ unique: true, predicate: null, columns: each }));
  const described = { schema, name, kind, columns, primary_key: key, foreign_keys, indexes, partition_bound: bound };
  return described as unknown as DescribedTable;
}

const users = tableOf("users", { columns: ["id", "name"], key: ["id"] });
const posts = tableOf("posts", {
  columns: ["id", "author", "parent?"],
  key: ["id"],
  refers: [
    [["author"], "users", ["id"]],
    [["parent"], "posts", ["id"]],
  ],
});
const profiles = tableOf("profiles", {
  columns: ["user_id"],
  key: ["user_id"],
  refers: [[["user_id"], "users", ["id"]]],
});
const catalogOf = (tables: DescribedTable[]) => {
  const schemas = [...new Set(tables.map(({ schema }) => schema))];
  return {
    tables,
    schemas: schemas.map((name) => ({ name, internal: name === "auth" })),
  } as unknown as DatabaseDescription;
};

describe("the diagram of tables", () => {
  test("has the tables of a schema, or of all but those of the service; no views and partitions", () => {
    const accounts = tableOf("accounts", { schema: "auth", columns: ["id"] });
    const view = tableOf("names", { columns: ["name"], kind: "view" });
    const partition = tableOf("posts_1", { columns: ["id"], bound: "DEFAULT" });
    const catalog = catalogOf([users, posts, accounts, view, partition]);
    expect(chooseTables(catalog, "public", null).map(({ name }) => name)).toEqual(["users", "posts"]);
    expect(chooseTables(catalog, null, null).map(({ name }) => name)).toEqual(["users", "posts"]);
    expect(chooseTables(catalog, "auth", null).map(({ name }) => name)).toEqual(["accounts"]);
  });

  test("has the neighbours of a table, in both directions", () => {
    const others = tableOf("others", { columns: ["id"] });
    const catalog = catalogOf([users, posts, profiles, others]);
    const around = (name: string) =>
      chooseTables(catalog, "public", JSON.stringify(["public", name])).map((each) => each.name);
    expect(around("users")).toEqual(["users", "posts", "profiles"]);
    expect(around("profiles")).toEqual(["users", "profiles"]);
  });

  test("knows how many rows a foreign key joins", () => {
    const { links } = toDiagram({ tables: [users, posts, profiles], columns: "all" });
    const facts = links.map(({ from, to, isMany, isOptional }) => [
      JSON.parse(from)[1],
      JSON.parse(to)[1],
      isMany,
      isOptional,
    ]);
    expect(facts).toEqual([
      ["posts", "users", true, false],
      ["posts", "posts", true, true],
      ["profiles", "users", false, false],
    ]);
  });

  test("shows all columns, those of keys, or none", () => {
    const rowsOf = (columns: "all" | "keys" | "none") =>
      toDiagram({ tables: [users, posts], columns }).boxes.map(({ rows }) => rows.map(({ name }) => name).join(" "));
    expect(rowsOf("all")).toEqual(["id name", "id author parent"]);
    expect(rowsOf("keys")).toEqual(["id", "id author parent"]);
    expect(rowsOf("none")).toEqual(["", ""]);
  });

  test("leaves out foreign keys to tables that are not shown, and names schemas if there are several", () => {
    expect(toDiagram({ tables: [profiles], columns: "all" }).links).toEqual([]);
    const accounts = tableOf("accounts", { schema: "auth", columns: ["id"] });
    const titles = toDiagram({ tables: [users, accounts], columns: "all" }).boxes.map(({ title }) => title);
    expect(titles).toEqual(["public.users", "auth.accounts"]);
  });

  test("joins boxes at the sides that face each other, at the rows of the columns", () => {
    const { boxes, links } = toDiagram({ tables: [users, posts], columns: "all" });
    const [target, source] = boxes.map((box, index) => ({ box, at: { x: index * 400, y: 0 } }));
    const ends = linkEnds(links[0]!, source!, target!);
    expect(ends.from).toMatchObject({ x: 400, y: 60, side: "left" });
    expect(ends.to).toMatchObject({ x: boxes[0]!.width, y: 40, side: "right" });
    expect(linkPath(ends.from, ends.to)).toMatch(/^M400 60C/);
    const loop = linkEnds(links[1]!, source!, source!);
    expect([loop.from.side, loop.to.side]).toEqual(["right", "right"]);
  });

  test("marks many rows, one row, no row, and the columns of a composite key", () => {
    const one = { x: 0, y: 50, side: "right", top: 50, bottom: 50 } as const;
    const several = { ...one, top: 40, bottom: 60 };
    expect(footPath(one, true)).toBe("M0 45L10 50L0 55");
    expect(footPath(one, false)).toBe("M10 45V55");
    expect(footPath(several, false)).toContain("M0 35V65");
    expect(targetPath(one, true)).toContain("a4 4");
    expect(targetPath(one, false)).not.toContain("a4 4");
  });

  test("leads a line around a box that would hide it", () => {
    const from = { x: 400, y: 100, side: "left", top: 100, bottom: 100 } as const;
    const to = { x: 0, y: 100, side: "right", top: 100, bottom: 100 } as const;
    expect(routeLink(from, to, [{ x: 150, y: 300, width: 100, height: 50 }])).toBe(linkPath(from, to));
    const around = routeLink(from, to, [{ x: 150, y: 80, width: 100, height: 200 }]);
    expect(around).toBe("M0 100C40 100 98 68 138 68H262C302 68 360 100 400 100");
    const between = routeLink(from, to, [
      { x: 150, y: 80, width: 100, height: 60 },
      { x: 150, y: 40, width: 100, height: 35 },
    ]);
    expect(between).toContain(" 138 152H262C");
  });

  test("has bounds around all boxes", () => {
    const { boxes } = toDiagram({ tables: [users, posts], columns: "none" });
    const placeOf = (id: string) => (id === boxes[0]!.id ? { x: -10, y: 5 } : { x: 200, y: 300 });
    expect(boundsOf(boxes, placeOf)).toEqual({
      x: -10,
      y: 5,
      width: 210 + boxes[1]!.width,
      height: 295 + boxes[1]!.height,
    });
  });
});
