import {
  type GraphqlField,
  type GraphqlSchema,
  type GraphqlType,
  type InputValue,
  namedType,
  printType,
  type TypeRef,
} from "./graphql-schema.ts";
import type { Operation, Subject } from "./subjects.ts";

export type GraphqlSample = { readonly query: string; readonly variables: string };

const MAX_FIELDS = 6;
const PAGE = 5;
const SCALARS: Readonly<Record<string, unknown>> = {
  Int: 1,
  Float: 1,
  Boolean: true,
  ID: "1",
  BigInt: "1",
  BigFloat: "1",
  JSON: {},
};

/** An operation for the subject; null if the role's schema has no field for it. */
export function graphqlSample(schema: GraphqlSchema, subject: Subject, operation: Operation): GraphqlSample | null {
  const found = findField(schema, subject, operation);
  if (!found) return null;
  const { field, root } = found;
  const args = field.args.filter(({ type, name }) => type.kind === "NON_NULL" || name === "input");
  const variables = Object.fromEntries(args.map(({ name, type }) => [name, sampleOf(schema, type, 0)]));
  const declarations = args.map(({ name, type }) => `$${name}: ${printType(type)}`);
  const given = [...args.map(({ name }) => `${name}: $${name}`), ...pageArguments(field)];
  const selection = selectionOf(schema, field.type, 1);
  const title = operation.charAt(0).toUpperCase() + operation.slice(1);
  const head = `${root} ${title}${declarations.length > 0 ? `(${declarations.join(", ")})` : ""}`;
  const query = `${head} {\n  ${field.name}${given.length > 0 ? `(${given.join(", ")})` : ""}${selection}\n}`;
  return { query, variables: JSON.stringify(variables, null, 2) };
}

type FoundField = { readonly root: "query" | "mutation"; readonly field: GraphqlField };

function findField(
  { queries, mutations, types }: GraphqlSchema,
  subject: Subject,
  operation: Operation,
): FoundField | null {
  const named = (fields: readonly GraphqlField[], name: string) => fields.find((field) => field.name === name);
  if (subject.kind === "function") {
    const name = camelCase(subject.called.name);
    const query = named(queries, name);
    const mutation = named(mutations, name);
    if (query) return { root: "query", field: query };
    return mutation ? { root: "mutation", field: mutation } : null;
  }
  const rows = named(queries, camelCase(nameInGraphql(subject.table)));
  if (!rows) return null;
  if (operation === "read") return { root: "query", field: rows };
  const rowType = rowTypeOf(types, rows.type);
  const verb = { insert: "create", update: "update", delete: "delete" }[operation as "insert" | "update" | "delete"];
  const mutation = rowType && verb ? named(mutations, `${verb}${rowType}`) : undefined;
  return mutation ? { root: "mutation", field: mutation } : null;
}

/** `@name films` in its comment takes the place of the name. */
function nameInGraphql({ name, comment }: { readonly name: string; readonly comment: string | null }): string {
  return /(?:^|\n)@name\s+(\S+)/.exec(comment ?? "")?.[1] ?? name;
}

/** The type of the rows of a list or a connection. */
function rowTypeOf(types: GraphqlSchema["types"], type: TypeRef): string | null {
  const name = namedType(type).name;
  const edges = types.get(name ?? "")?.fields?.find((field) => field.name === "edges");
  const node = edges && types.get(namedType(edges.type).name ?? "")?.fields?.find((field) => field.name === "node");
  return node ? namedType(node.type).name : name;
}

function pageArguments({ args }: GraphqlField): string[] {
  const page = args.find(({ name }) => name === "first" || name === "limit");
  return page ? [`${page.name}: ${PAGE}`] : [];
}

/** The first fields without arguments; of objects those of one level more. */
function selectionOf(schema: GraphqlSchema, type: TypeRef, depth: number): string {
  const found = schema.types.get(namedType(type).name ?? "");
  const fields = (found?.fields ?? []).filter(({ args }) => !args.some(isRequired));
  if (!found || fields.length === 0 || depth > 4) return "";
  const indent = "  ".repeat(depth + 1);
  const leaves = fields.filter((field) => isLeaf(schema, field.type)).map(({ name }) => name);
  const connected = fields.filter(({ name }) => name === "edges" || name === "node");
  const nested =
    connected.length > 0
      ? connected
      : leaves.length > 2
        ? []
        : fields.filter((field) => !isLeaf(schema, field.type)).slice(0, 2);
  const lines = [
    ...leaves.slice(0, MAX_FIELDS),
    ...nested
      .map((field) => ({ name: field.name, selection: selectionOf(schema, field.type, depth + 1) }))
      .filter(({ selection }) => selection !== "")
      .map(({ name, selection }) => name + selection),
  ];
  if (lines.length === 0) return "";
  return ` {\n${lines.map((line) => indent + line).join("\n")}\n${"  ".repeat(depth)}}`;
}

function isLeaf({ types }: GraphqlSchema, type: TypeRef): boolean {
  const kind = types.get(namedType(type).name ?? "")?.kind;
  return kind === "SCALAR" || kind === "ENUM";
}

/** A value of an argument: of an object its required fields, or else its first. */
function sampleOf(schema: GraphqlSchema, type: TypeRef, depth: number): unknown {
  if (type.kind === "NON_NULL") return sampleOf(schema, type.ofType!, depth);
  if (type.kind === "LIST") return [];
  const named = schema.types.get(type.name ?? "");
  if (named?.kind === "ENUM") return named.enumValues?.[0]?.name ?? null;
  if (named?.kind === "INPUT_OBJECT") return sampleInput(schema, named, depth);
  return SCALARS[type.name ?? ""] ?? "text";
}

function sampleInput(schema: GraphqlSchema, { inputFields }: GraphqlType, depth: number): Record<string, unknown> {
  const fields = inputFields ?? [];
  const required = fields.filter(isRequired);
  const chosen = required.length > 0 || depth > 0 ? required : fields.slice(0, 1);
  return Object.fromEntries(chosen.map(({ name, type }) => [name, sampleOf(schema, type, depth + 1)]));
}

function isRequired({ type, defaultValue }: InputValue): boolean {
  return type.kind === "NON_NULL" && defaultValue === null;
}

function camelCase(name: string): string {
  return name.replace(/_+([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}
