import fc from "fast-check";
import { COLUMNS, type Returning, type TableName } from "./access-rules.ts";

type Values = Readonly<Record<string, string | number | null>>;

/** One write of a table; related rows are inserted with the row of `thing`, or with that of `team`. */
export type Write =
  | RowWrite
  | { readonly kind: "nested"; readonly team: Values; readonly thing: Values; readonly root: TableName };
export type RowWrite =
  | { readonly kind: "insert"; readonly table: TableName; readonly rows: readonly Values[] }
  | { readonly kind: "update"; readonly table: TableName; readonly id: number; readonly values: Values }
  | { readonly kind: "delete"; readonly table: TableName; readonly id: number };

const VALUES = {
  id: fc.constantFrom(1, 5, 6, 7),
  owner: fc.constantFrom("a", "b", null),
  level: fc.constantFrom(0, 2, 3),
  note: fc.constantFrom("x", null),
  team_id: fc.constantFrom(1, 2, 3, 9, null),
};

const values = (table: TableName, required: readonly string[]): fc.Arbitrary<Values> => {
  const names = table === "team" ? COLUMNS : [...COLUMNS, "team_id" as const];
  const fields: Record<string, fc.Arbitrary<string | number | null>> = {};
  for (const name of names) fields[name] = VALUES[name];
  return fc.record(fields, { requiredKeys: [...required] });
};
const table = fc.constantFrom<TableName>("team", "thing", "thing");
const id = fc.constantFrom(1, 2, 3, 4, 5);

const insert = table.chain((name) => {
  const one = values(name, ["id"]);
  const alike = values(name, ["id"]).map((row) => [row, { ...row, id: 8 }]);
  const rows = fc.oneof(
    one.map((row) => [row]),
    alike,
  );
  return fc.record({ kind: fc.constant("insert" as const), table: fc.constant(name), rows });
});
const update = table.chain((name) =>
  fc.record({
    kind: fc.constant("update" as const),
    table: fc.constant(name),
    id,
    // An update without values is none on some interfaces, and the keys of rows stay.
    values: values(name, ["level"]).map(({ id: _, ...changed }) => changed as Values),
  }),
);
const remove = fc.record({ kind: fc.constant("delete" as const), table, id });
const nested = fc.record({
  kind: fc.constant("nested" as const),
  team: values("team", ["id"]),
  thing: values("thing", ["id"]).map(({ team_id: _, ...row }) => row as Values),
  root: fc.constantFrom<TableName>("team", "thing"),
});

export const writes: fc.Arbitrary<Write> = fc.oneof(insert, insert, update, update, remove, nested);

/** The write with these columns only. */
export function restrictColumns(write: RowWrite, keeps: (column: string) => boolean): RowWrite {
  const restrict = (row: Values) => Object.fromEntries(Object.entries(row).filter(([column]) => keeps(column)));
  if (write.kind === "insert") return { ...write, rows: write.rows.map(restrict) };
  return write.kind === "update" ? { ...write, values: restrict(write.values) } : write;
}

/** The statements of plain SQL, which return columns of the row if `returning` is not null. */
export type SqlStep = { readonly text: string; readonly values: readonly unknown[] };

export function toSql(write: Write, number: number, returning: Returning | null): readonly SqlStep[] {
  if (write.kind === "nested") {
    const { team, thing } = write;
    return [
      ...toSql({ kind: "insert", table: "team", rows: [team] }, number, returning),
      ...toSql({ kind: "insert", table: "thing", rows: [{ ...thing, team_id: team.id! }] }, number, returning),
    ];
  }
  const name = `public.${write.table}_${number}`;
  const columns = returning?.[write.table] ?? [];
  const returned = columns.length > 0 ? ` returning ${columns.join()}` : "";
  if (write.kind === "delete") return [{ text: `delete from ${name} where id = $1${returned}`, values: [write.id] }];
  if (write.kind === "update") {
    const names = Object.keys(write.values);
    const set = names.map((column, index) => `${column} = $${index + 2}`);
    const text = `update ${name} set ${set.join()} where id = $1${returned}`;
    return [{ text, values: [write.id, ...Object.values(write.values)] }];
  }
  const names = Object.keys(write.rows[0]!);
  if (names.length === 0) return [{ text: `insert into ${name} default values`, values: [] }];
  const rows = write.rows.map((_, at) => `(${names.map((_name, index) => `$${at * names.length + index + 1}`)})`);
  const given = write.rows.flatMap((row) => names.map((column) => row[column]));
  return [{ text: `insert into ${name} (${names.join()}) values ${rows.join()}${returned}`, values: given }];
}

type HttpRequest = {
  readonly path: string;
  readonly method: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
};

/** The write at `/rest/v1`, which returns the same columns. */
export function toTableRequest(write: Write, number: number, returning: Returning | null): HttpRequest {
  const prefer = (table: TableName) =>
    returning && returning[table].length > 0
      ? { select: `select=${returning[table].join()}`, Prefer: "return=representation" }
      : { select: "", Prefer: "return=minimal" };
  if (write.kind === "nested") {
    const { team, thing, root } = write;
    const { select, Prefer } = prefer(root);
    const body = root === "team" ? { ...team, [`thing_${number}`]: [thing] } : { ...thing, [`team_${number}`]: team };
    return {
      path: `/${root}_${number}?${select}`,
      method: "POST",
      headers: { Prefer: `nested=insert,${Prefer}` },
      body,
    };
  }
  const { select, Prefer } = prefer(write.table);
  const path = `/${write.table}_${number}?${select}`;
  const headers = { Prefer };
  if (write.kind === "insert") return { path, method: "POST", headers, body: write.rows };
  const row = `${path}&id=eq.${write.id}`;
  if (write.kind === "delete") return { path: row, method: "DELETE", headers };
  return { path: row, method: "PATCH", headers, body: write.values };
}

/** The write at `/api/v1`. */
export function toResourceRequest(write: RowWrite, number: number): HttpRequest {
  const path = `/api/v1/${write.table}-${number}`;
  if (write.kind === "delete") return { path: `${path}/${write.id}`, method: "DELETE" };
  if (write.kind === "update") return { path: `${path}/${write.id}`, method: "PATCH", body: write.values };
  const { rows } = write;
  return { path, method: "POST", body: rows.length === 1 ? rows[0] : rows };
}

/** The mutation; null for several rows, of which each would be a transaction. */
export function toMutation(write: Write, number: number): string | null {
  if (write.kind === "nested") {
    const { team, thing, root } = write;
    const related = root === "team" ? `thing${number}: [${literal(thing)}]` : `team: ${literal(team)}`;
    const own = literal(root === "team" ? team : thing).slice(1, -1);
    return `mutation { create${nameOf(root)}${number}(input: { ${own} ${related} }) { __typename } }`;
  }
  const field = `${nameOf(write.table)}${number}`;
  if (write.kind === "delete") return `mutation { delete${field}(id: ${write.id}) }`;
  if (write.kind === "update")
    return `mutation { update${field}(id: ${write.id}, input: ${literal(write.values)}) { __typename } }`;
  if (write.rows.length > 1) return null;
  return `mutation { create${field}(input: ${literal(write.rows[0]!)}) { __typename } }`;
}

function nameOf(table: TableName): string {
  return table === "team" ? "Team" : "Thing";
}

function literal(row: Values): string {
  const fields = Object.entries(row).map(([name, value]) => {
    return `${name === "team_id" ? "teamId" : name}: ${JSON.stringify(value)}`;
  });
  return `{ ${fields.join(" ")} }`;
}

/** A column that Postgres checks the privilege for. */
export type UsedColumn = { readonly table: TableName; readonly column: string; readonly verb: string };

export function columnsUsed(write: Write): readonly UsedColumn[] {
  const used = (table: TableName, verb: string, columns: readonly string[]) => [
    ...columns.map((column) => ({ table, column, verb })),
    { table, column: "id", verb: "select" },
  ];
  if (write.kind === "nested") {
    const { team, thing } = write;
    return [
      ...used("team", "insert", Object.keys(team)),
      ...used("thing", "insert", [...Object.keys(thing), "team_id"]),
    ];
  }
  if (write.kind === "delete") return used(write.table, "delete", ["id"]);
  if (write.kind === "update") return used(write.table, "update", Object.keys(write.values));
  return used(write.table, "insert", Object.keys(write.rows[0]!));
}
