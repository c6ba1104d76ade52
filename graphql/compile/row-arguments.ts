import { type SQL, sql } from "@dataplan/pg/pg-sql2";
import { type FieldNode, type GraphQLArgument, getNamedType, isInputObjectType } from "grafast/graphql";
import {
  type BindValue,
  conditionOf,
  type FieldSource,
  type FilterSource,
  hasRowArgument,
  isRowArgument,
  type RowOrder,
  rowFilterOf,
} from "#plugins";
import { isJsonObject } from "#runtime/json";
import {
  type CoercedVariables,
  type InputValue,
  type LeafReader,
  leafSql,
  mapLeaves,
  type OperationValues,
  parameterSql,
} from "./operation-values.ts";
import type { Field } from "./selection-reader.ts";

type RowsSource = Extract<FieldSource, { readonly kind: "rows" }>;
type Arguments = ReadonlyMap<string, InputValue>;

const LIST_ARGUMENTS: ReadonlySet<string> = new Set(["limit", "offset"]);
const PAGE_ARGUMENTS: ReadonlySet<string> = new Set(["first", "last", "after", "before"]);

export function isListArgument(argument: GraphQLArgument): boolean {
  return LIST_ARGUMENTS.has(argument.name) || isCollectionArgument(argument);
}

export function isPageArgument(argument: GraphQLArgument): boolean {
  return PAGE_ARGUMENTS.has(argument.name) || isCollectionArgument(argument);
}

export function isOneOf(args: readonly { readonly argument: string }[]): (argument: GraphQLArgument) => boolean {
  return ({ name }) => args.some(({ argument }) => argument === name);
}

/** `where`, `orderBy`, a filter, or an input whose fields are filters. */
function isCollectionArgument(argument: GraphQLArgument): boolean {
  if (isRowArgument(argument) || rowFilterOf(argument) !== null) return true;
  const type = getNamedType(argument.type);
  return isInputObjectType(type) && Object.values(type.getFields()).every((field) => rowFilterOf(field) !== null);
}

/** The conditions that the arguments of a collection set on a row. */
export function rowConditions(source: RowsSource, field: Field, args: Arguments, row: SQL): SQL[] {
  return [...filterConditions(field, args, row), ...whereConditions(source, field, args, row)];
}

/** The conditions of the filters, each of which is used once: as an argument or within `filter`. */
function filterConditions({ args: defined }: Field, args: Arguments, row: SQL): SQL[] {
  return defined.flatMap((argument) => {
    if (isRowArgument(argument)) return [];
    const value = args.get(argument.name)!;
    const filter = rowFilterOf(argument);
    if (filter) return filterCondition(filter, value, row);
    if (value.kind !== "object") return [];
    const type = getNamedType(argument.type);
    const fields = isInputObjectType(type) ? Object.values(type.getFields()) : [];
    return fields.flatMap((each) => filterCondition(rowFilterOf(each)!, value.fields.get(each.name)!, row));
  });
}

function filterCondition({ condition, codec, isItem }: FilterSource, value: InputValue, row: SQL): SQL[] {
  if (value.kind === "absent" || value.kind === "null") return [];
  return [condition(row, parameterSql(value, codec, isItem && ((item) => [item])))];
}

function whereConditions({ conditionFields }: RowsSource, field: Field, args: Arguments, row: SQL): SQL[] {
  if (!hasRowArgument(field, "where")) return [];
  const where = withBoundLeaves(args.get("where")!);
  return where == null
    ? []
    : [conditionOf(conditionFields(), where as Readonly<Record<string, unknown>>, row, bindLeaf)];
}

/** The value of an argument such as `where`, whose leaves `bindLeaf` makes parameters of. */
function withBoundLeaves(value: InputValue): unknown {
  return mapLeaves(value, (read) => new BoundLeaf(read));
}

/** A scalar or list of scalars. */
class BoundLeaf {
  readonly read: LeafReader;

  constructor(read: LeafReader) {
    this.read = read;
  }
}

const bindLeaf: BindValue = (value, codec) => {
  if (value === null) return sql`null::${codec.sqlType}`;
  return leafSql((variables) => withValues(value, variables), codec);
};

/** A range or a composite value is an object, whose leaves are bound. */
function withValues(value: unknown, variables: CoercedVariables): unknown {
  if (value instanceof BoundLeaf) return value.read(variables);
  if (Array.isArray(value)) return value.map((item) => withValues(item, variables));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, withValues(member, variables)]));
}

/** The SQL of the result that a search has for a row, such as its rank. */
export function searchResultSql(
  { argument, valueFor }: Extract<FieldSource, { readonly kind: "search result" }>,
  field: Field,
  node: FieldNode,
  values: OperationValues,
  row: SQL,
): SQL {
  const search = values.argumentsOf(field, node, isOneOf([{ argument }])).get(argument)!;
  return valueFor(withBoundLeaves(search) as Readonly<Record<string, unknown>>, row, bindLeaf);
}

/** The order of a collection's rows. */
export function orderOf(source: RowsSource, field: Field, args: Arguments, values: OperationValues): RowOrder {
  const constantOf = (leaf: unknown) => (leaf instanceof BoundLeaf ? values.constantOf(leaf.read) : leaf);
  return source.orderOf(requestedOrder(field, args), { bind: bindLeaf, constantOf });
}

export function isOrderRequested(field: Field, args: Arguments): boolean {
  return requestedOrder(field, args) != null;
}

function requestedOrder(field: Field, args: Arguments): unknown {
  return hasRowArgument(field, "orderBy") ? withBoundLeaves(args.get("orderBy")!) : null;
}
