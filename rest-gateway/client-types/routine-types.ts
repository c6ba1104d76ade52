import type { Catalog } from "../../engine/catalog/catalog.ts";
import type { Argument, Routine } from "../../engine/catalog/routines.ts";
import { hasSmartTag } from "../../engine/catalog/spoken-comment.ts";
import type { Table } from "../../engine/catalog/tables.ts";
import { baseTypeOf, type DataType } from "../../engine/catalog/types.ts";
import { isCallable } from "../statement/plan/parameters.ts";
import { indented, property } from "./block.ts";
import { listText, objectText, type TypeText } from "./type-text.ts";

/** Called by its name, or embedded in the rows of the table that it takes one of. */
export function isReached(routine: Routine, catalog: Catalog): boolean {
  if (isCallable(routine)) return true;
  const { from, to } = endsOf(routine, catalog);
  return routine.kind === "function" && from !== null && to !== null;
}

/** The overloads of one name, as a union. */
export function routineType(overloads: readonly Routine[], catalog: Catalog, textOf: TypeText): string {
  const variants = overloads.map((routine) => variantOf(routine, catalog, textOf));
  return `${property(overloads[0]!.name)}: ${variants.join(" | ")};`;
}

function variantOf(routine: Routine, catalog: Catalog, textOf: TypeText): string {
  const members = [`Args: ${argumentsType(routine, textOf)};`, `Returns: ${returnsType(routine, textOf)};`];
  const options = rowsOptions(routine, catalog);
  if (options) members.push(options);
  return `{\n${indented(members.join("\n"))}\n}`;
}

function argumentsType({ arguments: all }: Routine, textOf: TypeText): string {
  if (all.length === 0) return "never";
  return `{ ${all.map((argument) => argumentText(argument, textOf)).join(" ")} }`;
}

function argumentText({ name, type, required, default: text }: Argument, textOf: TypeText): string {
  const takesNull = text !== null && /^null\b/i.test(text);
  // supabase-js knows an argument without a name by this key.
  return `${property(name ?? "")}${required ? "" : "?"}: ${textOf(type)}${takesNull ? " | null" : ""};`;
}

/** Rows of a table are as its columns are. Any other value may be null, unless a comment says that it is not. */
function returnsType({ returns, comment }: Routine, textOf: TypeText): string {
  const value = returns.columns.size > 0 ? objectText(returns.columns.values(), textOf) : textOf(returns.type);
  if (returns.shape === "scalar" && !returns.set && !hasSmartTag(comment, "notNull")) return `${value} | null`;
  return returns.set ? listText(value) : value;
}

/** By which supabase-js knows that rows of a table come back, and lets them be selected from. */
function rowsOptions(routine: Routine, catalog: Catalog): string | null {
  const { from, to } = endsOf(routine, catalog);
  if (!to) return null;
  const { returns } = routine;
  const fields = [
    `from: ${JSON.stringify(from?.name ?? "*")};`,
    `to: ${JSON.stringify(to.name)};`,
    `isOneToOne: ${!returns.set || returns.estimatedRows === 1};`,
    `isSetofReturn: ${returns.set};`,
  ];
  return `SetofOptions: {\n${indented(fields.join("\n"))}\n};`;
}

/** The tables of the row that it takes first and of the rows that it gives. */
function endsOf({ arguments: [first], returns }: Routine, catalog: Catalog) {
  return {
    from: first ? tableOf(first.type, catalog) : null,
    to: returns.columns.size === 0 ? tableOf(returns.type, catalog) : null,
  };
}

function tableOf(type: DataType, catalog: Catalog): Table | null {
  const row = baseTypeOf(type);
  const table = row.kind === "composite" && row.table ? catalog.findTable(row.table) : undefined;
  return table && catalog.schemas.get(table.schema)?.exposed ? table : null;
}
