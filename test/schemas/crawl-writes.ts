import {
  type GraphQLField,
  type GraphQLInputObjectType,
  getNamedType,
  isInputObjectType,
  isObjectType,
} from "grafast/graphql";
import { type GraphQLShapes, leavesOf } from "./crawl-graphql.ts";
import { addressOf, keyOf } from "./crawl-resource-interface.ts";
import type { Table } from "./described.ts";
import { canonical, isRecord, type Json } from "./exact.ts";
import type { Findings } from "./findings.ts";
import { normalName } from "./normal-name.ts";
import { qualified, quoted } from "./rows.ts";
import type { Served } from "./served.ts";

type Row = { readonly [name: string]: Json };

/** Disables triggers, so that nothing but what is sent changes a row. */
export async function disableTriggers({ owner, tables }: Served): Promise<void> {
  const stored = tables.filter(({ kind }) => kind === "r" || kind === "p");
  await owner.query(stored.map((table) => `alter table ${qualified(table)} disable trigger user`).join("; "));
}

/** A row that was read on an interface is sent back to it as an update, and is the same row afterwards. */
export async function crawlWrites(
  served: Served,
  shapes: GraphQLShapes,
  table: Table,
  findings: Findings,
): Promise<void> {
  if ((table.kind !== "r" && table.kind !== "p") || table.primaryKey.length === 0) return;
  const order = table.primaryKey.map(quoted).join(", ");
  const readFirst = async () =>
    (await served.sql(`select t.* from ${qualified(table)} as t order by ${order} limit 1`))[0];
  const row = await readFirst();
  if (row === undefined || !isRecord(row)) return;
  const compare = async (
    where: "table" | "resource" | "graphql",
    { status, text }: { status: number; text: string },
  ) => {
    const isTaken = status < 300 && !(where === "graphql" && text.includes('"errors":'));
    findings.note(where, table.name, "row sent back", isTaken, "taken", text);
    findings.compare(where, table.name, "row after it was sent back", row, await readFirst());
  };
  await compare("table", await sendToTable(served, table, row));
  await compare("resource", await sendToResource(served, table, row));
  const sent = await sendToGraphQL(served, shapes, table, row);
  if (sent) await compare("graphql", sent);
}

async function sendToTable({ ask }: Served, table: Table, row: Row): Promise<{ status: number; text: string }> {
  const filters = table.primaryKey.map(
    (name) => `${encodeURIComponent(`"${name}"`)}=eq.${encodeURIComponent(textOf(row[name]))}`,
  );
  const headers = { "Content-Type": "application/json", "Content-Profile": table.schema };
  const columns = table.columns.filter(({ generated }) => !generated).map(({ name }) => [name, row[name]!] as const);
  const body = canonical(Object.fromEntries(columns));
  return ask(`/rest/v1/${encodeURIComponent(table.name)}?${filters.join("&")}`, { method: "PATCH", headers, body });
}

/** Sends the row back unchanged: it lacks the columns that nobody may write. */
async function sendToResource({ ask }: Served, table: Table, row: Row): Promise<{ status: number; text: string }> {
  const address = `${addressOf(table)}/${keyOf(table, row)}`;
  const { text } = await ask(address);
  return ask(address, { method: "PUT", headers: { "Content-Type": "application/json" }, body: text });
}

/** Null where no mutation changes its rows. */
async function sendToGraphQL(
  { graphql }: Served,
  { schema, of }: GraphQLShapes,
  { name, primaryKey }: Table,
  row: Row,
): Promise<{ status: number; text: string } | null> {
  const type = of.get(name)?.type;
  const fields = Object.values(schema.getMutationType()?.getFields() ?? {});
  const update = fields.find(
    (field) =>
      getNamedType(field.type) === type && /^update/.test(field.name) && field.args.length === primaryKey.length + 1,
  );
  const find = Object.values(schema.getQueryType()!.getFields()).find(
    (field) => getNamedType(field.type) === type && field.args.length === primaryKey.length,
  );
  const input = update?.args.map((argument) => getNamedType(argument.type)).find(isInputObjectType);
  if (!update || !find || !input || !isObjectType(type)) return null;
  const response = Object.values((input as GraphQLInputObjectType).getFields()).flatMap((wanted) => {
    const field = type.getFields()[wanted.name];
    return field && isObjectType(getNamedType(field.type)) === isInputObjectType(getNamedType(wanted.type))
      ? [field]
      : [];
  });
  if (response.length === 0) return null;
  const selection = response.map((field) => `${field.name}${leavesOf(getNamedType(field.type))}`).join(" ");
  const key = (field: GraphQLField<unknown, unknown>) =>
    primaryKey.map((column) => {
      const argument = field.args.find((each) => normalName(each.name) === normalName(column))!;
      return { name: argument.name, type: String(argument.type), value: row[column]! };
    });
  const declared = key(find)
    .map(({ name: each, type: of }) => `$${each}: ${of}`)
    .join(", ");
  const given = key(find)
    .map(({ name: each }) => `${each}: $${each}`)
    .join(", ");
  const variables = Object.fromEntries(key(find).map(({ name: each, value }) => [each, value]));
  const read = await graphql(`query (${declared}) { row: ${find.name}(${given}) { ${selection} } }`, variables);
  if (!isRecord(read.json) || !isRecord(read.json.data) || !isRecord(read.json.data.row)) return read;
  return graphql(
    `mutation (${declared}, $input: ${input.name}!) { row: ${update.name}(${given}, input: $input) { __typename } }`,
    { ...variables, input: read.json.data.row },
  );
}

function textOf(value: Json | undefined): string {
  return typeof value === "string" ? value : canonical(value);
}
