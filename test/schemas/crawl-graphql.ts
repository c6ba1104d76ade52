import {
  buildClientSchema,
  type GraphQLField,
  type GraphQLInputObjectType,
  type GraphQLInputType,
  type GraphQLObjectType,
  type GraphQLSchema,
  getIntrospectionQuery,
  getNamedType,
  getNullableType,
  isEnumType,
  isInputObjectType,
  isLeafType,
  isListType,
  isObjectType,
} from "grafast/graphql";
import type { Column, Table } from "./described.ts";
import { canonical, isRecord, type Json, sorted } from "./exact.ts";
import type { Findings } from "./findings.ts";
import { asColumn, asToldByGraphQL } from "./graphql-values.ts";
import { normalName } from "./normal-name.ts";
import { backward, forward, type Relation } from "./relations.ts";
import { qualified, quoted } from "./rows.ts";
import type { Served } from "./served.ts";

type Field = GraphQLField<unknown, unknown>;

/** A table in the schema of the role. */
type Shape = {
  readonly table: Table;
  readonly list: Field;
  readonly isConnection: boolean;
  readonly type: GraphQLObjectType;
  /** The fields of the columns that have one. */
  readonly fields: ReadonlyMap<string, Field>;
};

export type GraphQLShapes = { readonly schema: GraphQLSchema; readonly of: ReadonlyMap<string, Shape> };

export async function readShapes(served: Served, findings: Findings): Promise<GraphQLShapes> {
  const { json } = await served.graphql(getIntrospectionQuery());
  if (!isRecord(json) || !json.data) throw new Error(`No schema: ${canonical(json).slice(0, 500)}`);
  const schema = buildClientSchema(JSON.parse(canonical(json.data)));
  const lists = Object.values(schema.getQueryType()!.getFields()).flatMap((list) => {
    const connection = getNamedType(list.type);
    const isConnection = isObjectType(connection) && connection.name.endsWith("Connection");
    const type = isConnection ? nodeOf(connection) : connection;
    return isObjectType(type) && (isConnection || isListType(getNullableType(list.type)))
      ? [{ list, type, isConnection }]
      : [];
  });
  // A table takes the list with the most of its columns, if several may be its own, and no two tables share a list.
  const possible = served.tables.flatMap((table) =>
    lists
      .filter(({ list }) => isNamedFor(list.name, table.name))
      .map((each) => ({
        ...each,
        table,
        fields: fieldsOf(table, each.type),
        isExact: normalName(each.list.name) === normalName(table.name),
      })),
  );
  possible.sort((one, other) => other.fields.size - one.fields.size || Number(other.isExact) - Number(one.isExact));
  const of = new Map<string, Shape>();
  for (const shape of possible) {
    const isTaken = of.has(shape.table.name) || [...of.values()].some(({ list }) => list === shape.list);
    if (!isTaken) of.set(shape.table.name, shape);
  }
  for (const { name } of served.tables)
    findings.note("graphql", name, "field of the root", of.has(name), "a list", "none");
  return { schema, of };
}

/** The list with each column and each foreign key from both sides, rows by the primary key, and filters. */
export async function crawlGraphQL(
  served: Served,
  shapes: GraphQLShapes,
  table: Table,
  findings: Findings,
): Promise<void> {
  const shape = shapes.of.get(table.name);
  if (!shape) return;
  for (const { name } of table.columns) {
    const isShown = shape.fields.has(name);
    findings.note("graphql", `${table.name}.${name}`, "field", isShown, "a field", "none");
  }
  const rows = await compareList(served, shape, findings);
  await compareRowsByKey(served, shapes, shape, rows, findings);
  await compareRelations(served, shapes, shape, rows, findings);
  await compareFilters(served, shape, rows, findings);
}

/** The rows alone. */
export async function compareList(served: Served, shape: Shape, findings: Findings): Promise<readonly Json[]> {
  const rows = await served.sql(`select t.* from ${qualified(shape.table)} as t`);
  compareRows(shape, "rows", rows, await readNodes(served, shape, columnsOf(shape)), findings);
  return rows;
}

async function readNodes(served: Served, { list, isConnection }: Shape, selection: string): Promise<Json> {
  const given = isConnection || list.args.some(({ name }) => name === "first") ? `(first: 1000)` : "";
  const { json } = await served.graphql(
    `{ rows: ${list.name}${given} ${isConnection ? `{ edges { node { ${selection} } } }` : `{ ${selection} }`} }`,
  );
  if (!isRecord(json) || json.errors !== undefined || !isRecord(json.data)) return json;
  const { rows } = json.data;
  if (!isConnection) return rows!;
  return isRecord(rows) && Array.isArray(rows.edges)
    ? rows.edges.map((edge) => (isRecord(edge) ? edge.node! : edge))
    : json;
}

/** `__typename` where no column is a field. */
function columnsOf({ fields }: Shape): string {
  return ["__typename", ...[...fields.values()].map(({ name, type }) => `${name}${leavesOf(getNamedType(type))}`)].join(
    " ",
  );
}

/** Returns all that is below a field, as a selection. */
export function leavesOf(type: unknown): string {
  if (!isObjectType(type)) return "";
  const leaves = Object.values(type.getFields()).map(({ name, type }) => `${name}${leavesOf(getNamedType(type))}`);
  return ` { ${leaves.join(" ")} }`;
}

function compareRows(shape: Shape, check: string, rows: Json, nodes: Json, findings: Findings): void {
  const { table, fields } = shape;
  if (!Array.isArray(nodes) || !Array.isArray(rows)) {
    findings.compare("graphql", table.name, check, rows, nodes);
    return;
  }
  const columns = table.columns.filter(({ name }) => fields.has(name));
  const expected = sorted(rows.map((row) => expectedRow(columns, row)));
  const result = sorted(nodes.map((node) => toldRow(shape, columns, node)));
  if (canonical(expected) === canonical(result)) {
    // Each value counts: all of them have been compared.
    for (const { name } of columns) findings.note("graphql", `${table.name}.${name}`, check, true, "", "");
    return;
  }
  for (const column of columns) {
    const valuesOf = (each: Json) => sorted((each as Json[]).map((row) => (isRecord(row) ? row[column.name]! : null)));
    findings.compare("graphql", `${table.name}.${column.name}`, check, valuesOf(expected), valuesOf(result));
  }
  findings.compare("graphql", table.name, check, expected, result);
}

function expectedRow(columns: readonly Column[], row: Json): Json {
  if (!isRecord(row)) return row;
  return Object.fromEntries(columns.map((column) => [column.name, asColumn(column, row[column.name]!)]));
}

function toldRow({ fields }: Shape, columns: readonly Column[], node: Json): Json {
  if (!isRecord(node)) return node;
  return Object.fromEntries(
    columns.map((column) => [column.name, asToldByGraphQL(column, node[fields.get(column.name)!.name])]),
  );
}

async function compareRowsByKey(
  served: Served,
  { schema }: GraphQLShapes,
  shape: Shape,
  rows: readonly Json[],
  findings: Findings,
): Promise<void> {
  const { table, type } = shape;
  if (table.primaryKey.length === 0 || table.kind === "v") return;
  const single = Object.values(schema.getQueryType()!.getFields()).find(
    (field) => getNullableType(field.type) === type && field.args.length === table.primaryKey.length,
  );
  if (!findings.note("graphql", table.name, "field of the root by key", single !== undefined, "a field", "none"))
    return;
  const keyOf = (row: Json) =>
    table.primaryKey
      .map((name) => {
        const argument = single!.args.find((each) => normalName(each.name) === normalName(name))!;
        return `${argument.name}: ${literal(argument.type, isRecord(row) ? row[name]! : null)}`;
      })
      .join(", ");
  if (table.primaryKey.some((name) => !single!.args.some((each) => normalName(each.name) === normalName(name)))) {
    findings.note(
      "graphql",
      table.name,
      "arguments of the key",
      false,
      table.primaryKey.join(),
      single!.args.map(({ name }) => name).join(),
    );
    return;
  }
  for (const row of rows.slice(0, 3)) {
    const { json } = await served.graphql(`{ row: ${single!.name}(${keyOf(row)}) { ${columnsOf(shape)} } }`);
    const result = isRecord(json) && isRecord(json.data) ? [json.data.row!] : json;
    compareRows(shape, "row by key", [row], result, findings);
  }
}

async function compareRelations(
  served: Served,
  shapes: GraphQLShapes,
  shape: Shape,
  rows: readonly Json[],
  findings: Findings,
): Promise<void> {
  const { table, type } = shape;
  const relations = [...forward(served.tables, table), ...backward(served.tables, table)];
  if (relations.length === 0 || rows.length === 0) return;
  const ends = new Map([...shapes.of.values()].map((each) => [each.type, each]));
  const candidates = Object.values(type.getFields()).flatMap((field) => {
    const target = ends.get(getNamedType(field.type) as GraphQLObjectType);
    return target ? { field, target } : [];
  });
  const selection = candidates.map(({ field, target }, index) => {
    const all = field.args.some(({ name }) => name === "limit") ? "(limit: 1000)" : "";
    return `c${index}: ${field.name}${all} { ${columnsOf(target)} }`;
  });
  const nodes = await readNodes(served, shape, ["__typename", ...selection].join(" "));
  const identity = await readNodes(served, shape, columnsOf(shape));
  for (const relation of relations) {
    const { target, join, kind } = relation;
    const subject = `${table.name} ${kind.arrow} ${target.name} (${relation.key.name})`;
    const there = shapes.of.get(target.name);
    if (!there || !Array.isArray(nodes) || !Array.isArray(identity)) {
      findings.note("graphql", subject, "relation", false, "a relation", canonical(nodes));
      continue;
    }
    const expected = await served.sql(
      `select t.*, (select coalesce(json_agg(o.*), '[]') from ${qualified(target)} as o where ${join}) as _related from ${qualified(table)} as t`,
    );
    const right = expected
      .map((row) => pair(shape, relation, row))
      .map(canonical)
      .sort()
      .join();
    const result = candidates
      .map((candidate, index) => ({ ...candidate, index }))
      .filter((candidate) => candidate.target === there)
      .map(({ index, field }) => ({
        name: field.name,
        text: nodes
          .map((node, number) => canonical(toldPair(shape, there, identity[number]!, node, index)))
          .sort()
          .join(),
      }));
    const isRight = result.some(({ text }) => text === right);
    findings.note(
      "graphql",
      subject,
      "relation",
      isRight,
      right,
      result.map(({ name, text }) => `${name}: ${text}`).join("; ") || "no field",
    );
  }

  function pair(near: Shape, { target }: Relation, row: Json): Json {
    const far = shapes.of.get(target.name)!;
    if (!isRecord(row)) return row;
    const related = (row._related as readonly Json[]).map((each) => expectedRow(shownColumns(far), each));
    return [expectedRow(shownColumns(near), row), sorted(related)];
  }

  function toldPair(near: Shape, far: Shape, own: Json, node: Json, index: number): Json {
    const value = isRecord(node) ? node[`c${index}`] : undefined;
    const related = value === undefined || value === null ? [] : Array.isArray(value) ? value : [value];
    return [
      toldRow(near, shownColumns(near), own),
      sorted(related.map((each) => toldRow(far, shownColumns(far), each))),
    ];
  }
}

function shownColumns({ table, fields }: Shape): Column[] {
  return table.columns.filter(({ name }) => fields.has(name));
}

async function compareFilters(served: Served, shape: Shape, rows: readonly Json[], findings: Findings): Promise<void> {
  const { table, list, isConnection } = shape;
  const filter = list.args.find(({ name }) => name === "filter");
  const input = filter && getNamedType(filter.type);
  if (!isConnection || !isInputObjectType(input)) return;
  for (const column of table.columns) {
    const field = Object.values((input as GraphQLInputObjectType).getFields()).find(
      ({ name }) => normalName(name) === normalName(column.name),
    );
    const value = rows.map((row) => (isRecord(row) ? row[column.name]! : null)).find((each) => each !== null);
    if (
      !field ||
      value === undefined ||
      isListType(getNullableType(field.type)) ||
      isInputObjectType(getNamedType(field.type))
    )
      continue;
    if (column.baseType === "json" || column.baseType === "jsonb" || column.baseType === "bytea") continue;
    const [expected] = await served.sql(
      `select count(*)::int as count from ${qualified(table)} where ${quoted(column.name)} = ${sqlLiteral(value)}`,
    );
    const { json } = await served.graphql(
      `{ rows: ${list.name}(first: 1, filter: { ${field.name}: ${literal(field.type, value)} }) { totalCount } }`,
    );
    const result = isRecord(json) && isRecord(json.data) && isRecord(json.data.rows) ? json.data.rows.totalCount : json;
    findings.compare(
      "graphql",
      `${table.name}.${column.name}`,
      "filter",
      isRecord(expected) ? expected.count : null,
      result,
    );
  }
}

function sqlLiteral(value: Json): string {
  return `'${(typeof value === "string" ? value : canonical(value)).replaceAll("'", "''")}'`;
}

/** The value as it is written in a document. */
function literal(type: GraphQLInputType, value: Json): string {
  const named = getNamedType(type);
  if (isEnumType(named))
    return named.getValues().find(({ name }) => normalName(name) === normalName(String(value)))?.name ?? "null";
  if (typeof value === "boolean") return String(value);
  const text = typeof value === "string" ? value : canonical(value);
  return isLeafType(named) && (named.name === "Int" || named.name === "Float") ? text : JSON.stringify(text);
}

function nodeOf(connection: GraphQLObjectType): unknown {
  const edges = getNamedType(connection.getFields().edges!.type);
  return isObjectType(edges) ? getNamedType(edges.getFields().node!.type) : null;
}

/** Returns a column's own field, by the name in camelCase; a field that leads to another table is a relation. */
function fieldsOf(table: Table, type: GraphQLObjectType): ReadonlyMap<string, Field> {
  const fields = Object.values(type.getFields());
  const isValue = ({ type: result, args }: Field) => {
    const named = getNamedType(result);
    return args.length === 0 && (isLeafType(named) || /^(Interval|.*Range|Point|Cidr)$/.test(named.name));
  };
  return new Map(
    table.columns.flatMap(({ name }) => {
      // Where the relation has the column's name, the column is the relation's id.
      const field = [normalName(name), `${normalName(name)}id`]
        .map((wanted) => fields.find((each) => normalName(each.name) === wanted && isValue(each)))
        .find((each) => each !== undefined);
      return field ? [[name, field] as const] : [];
    }),
  );
}

function isNamedFor(list: string, table: string): boolean {
  const [one, other] = [normalName(list), normalName(table)];
  const singulars = (name: string) => [
    name,
    name.replace(/s$/, ""),
    name.replace(/es$/, ""),
    name.replace(/ies$/, "y"),
    name.replace(/a$/, "um"),
    name.replace(/ata$/, "a"),
    name.replace(/ices$/, "ix"),
    name.replace(/ices$/, "ex"),
  ];
  const records = one.replace(/records$/, "");
  return (
    [one, records].some((each) => singulars(each).some((word) => singulars(other).includes(word))) ||
    `all${other}` === one
  );
}
