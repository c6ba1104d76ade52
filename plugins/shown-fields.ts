import { TYPES } from "@dataplan/pg";
import {
  type FieldNode,
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLInputField,
  type GraphQLObjectType,
  getNamedType,
  isInputObjectType,
  isObjectType,
  type SelectionSetNode,
} from "grafast/graphql";
import type { Catalog, CatalogTable } from "#catalog";
import {
  type ColumnComparison,
  type ShownPage,
  type ShownRelation,
  type ShownRemainder,
  type ShownRows,
  type ShownTable,
  toShownPage,
} from "#planner/shown-tables";
import { baseCodecOf } from "./codecs.ts";
import { type FieldSource, type PagePart, rowFilterOf, sourceOf } from "./field-sources.ts";
import { toOriginalCodec } from "./IdScalarPlugin.ts";
import { type RowOrder, readLimit, readOffset, readPage } from "./PaginationPlugin.ts";
import { bindWithCodec, type ColumnValueComparison, columnComparisonsOf, type InputObject } from "./row-conditions.ts";
import type { Codec, PgRelation, PgTable } from "./table.ts";
import { hasRowArgument, isRowArgument } from "./WherePlugin.ts";

/** Reads selections with the values of a request. */
export type SelectionValues = {
  /** The selected fields by response key. */
  fieldsOf(type: GraphQLObjectType, selections: readonly SelectionSetNode[]): ReadonlyMap<string, readonly FieldNode[]>;
  argumentsOf(field: GraphQLField<unknown, unknown>, node: FieldNode): InputObject;
};

type Source<Kind extends FieldSource["kind"]> = Extract<FieldSource, { readonly kind: Kind }>;
type RowsOfTable = Pick<ShownTable, "comparisons" | "isIndependent" | "page" | "reads" | "remainders">;
type ReadOfRows = Pick<RowsOfTable, "isIndependent" | "reads" | "remainders"> & Pick<ShownPage, "rows" | "isReversed">;
type Selected = { readonly type: GraphQLObjectType; readonly selections: readonly SelectionSetNode[] };

/** A field with subfields. */
type ObjectField = Selected & {
  readonly key: string;
  readonly field: GraphQLField<unknown, unknown>;
  readonly args: InputObject;
};

/** Codecs of values whose text in JSON is the text of Postgres. */
const PLAIN_CODECS = new Set<Codec>([TYPES.int2, TYPES.int, TYPES.bigint, TYPES.uuid, TYPES.text, TYPES.varchar]);
const ONE_ROW: RowsOfTable = { comparisons: [], isIndependent: true, page: null, reads: 1, remainders: [] };

/** The rows that the fields of an object show, as far as their sources are rows of tables. */
export function shownRowsOf(selected: Selected, values: SelectionValues, catalog: Catalog): readonly ShownRows[] {
  return new ShownFields(values, catalog).of(selected).flatMap(({ path, table }) => (table ? [{ path, table }] : []));
}

class ShownFields {
  readonly #values: SelectionValues;
  readonly #catalog: Catalog;

  constructor(values: SelectionValues, catalog: Catalog) {
    this.#values = values;
    this.#catalog = catalog;
  }

  of({ type, selections }: Selected): ShownRelation[] {
    return [...this.#values.fieldsOf(type, selections)].flatMap(([key, nodes]): ShownRelation[] => {
      const field = type.getFields()[nodes[0]!.name.value];
      const source = field && sourceOf(field);
      if (source?.kind !== "row" && source?.kind !== "related row" && source?.kind !== "rows") return [];
      const args = this.#values.argumentsOf(field!, nodes[0]!);
      const own = { ...selectedBy(field!, nodes), key, field: field!, args };
      if (source.kind === "row") return [this.#rowByKey(source, own)];
      if (source.kind === "related row") return this.#relatedRow(source, own);
      return [source.isConnection ? this.#connection(source, own) : this.#list(source, own)];
    });
  }

  #rowByKey({ table, key }: Source<"row">, own: ObjectField): ShownRelation {
    const compared = key.map(({ column, argument }) => {
      const { codec } = table.codec.attributes[column]!;
      return { column, codec, operator: "eq" as const, value: own.args[argument] };
    });
    const shown = this.#table(table, own, ({ oid }) => ({ ...ONE_ROW, comparisons: toComparisons(oid, compared) }));
    return { path: [own.key], isList: false, joins: [], table: shown };
  }

  #relatedRow({ path: [relation, ...others] }: Source<"related row">, own: ObjectField): ShownRelation[] {
    if (others.length > 0) return [];
    const shown = this.#table(relation!.remoteResource as PgTable, own, () => ONE_ROW);
    return [{ path: [own.key], isList: false, joins: joinsOf(relation!, shown), table: shown }];
  }

  #list(source: Source<"rows">, own: ObjectField): ShownRelation {
    const { table, relation, maxPageSize } = source;
    const rows = readLimit(countOf(own, "limit"), maxPageSize);
    const isIndependent = readOffset(countOf(own, "offset")) === 0;
    const read = { rows, isReversed: false, isIndependent, reads: 1, remainders: [] };
    const shown = this.#table(table, own, (of) => rowsOf(source, own, of, read));
    return { path: [own.key], isList: true, joins: relation ? joinsOf(relation, shown) : [], table: shown };
  }

  #connection(source: Source<"rows">, own: ObjectField): ShownRelation {
    const { first, last } = readPage(countOf(own, "first"), countOf(own, "last"), source.maxPageSize);
    const page = { rows: (first ?? last)!, isReversed: last !== null };
    const parts = this.#selected(own);
    const edges = parts.find(({ field }) => isPart(field, "edges"));
    const node = edges && this.#selected(edges).find(({ field }) => isPart(field, "node"));
    const counts = parts.filter(({ field }) => isPart(field, "totalCount"));
    const infos = parts.filter(({ field }) => isPart(field, "pageInfo"));
    const flags = infos.flatMap((info) =>
      this.#selected(info)
        // The other flag only says whether the request has a cursor.
        .filter(({ field }) => isPart(field, page.isReversed ? "hasPreviousPage" : "hasNextPage"))
        .map(({ key }) => [own.key, info.key, key]),
    );
    const known = parts.filter(({ field }) => isPart(field, "edges")).length + counts.length + infos.length;
    const read = {
      ...page,
      isIndependent: known === parts.length,
      // The rows of the edges are read once, and counted by a subquery for each count.
      reads: known === parts.length && edges && page.rows > 0 ? 1 + counts.length : 0,
      remainders: [
        ...counts.map(({ key }): ShownRemainder => ({ path: [own.key, key], kind: "count" })),
        ...flags.map((path): ShownRemainder => ({ path, kind: "flag" })),
      ],
    };
    const shown = this.#table(source.table, node ?? { ...own, selections: [] }, (of) => rowsOf(source, own, of, read));
    return { path: node ? [own.key, edges!.key, node.key] : [own.key], isList: true, joins: [], table: shown };
  }

  #table(
    { codec, extensions }: PgTable,
    selected: Selected,
    of: (table: CatalogTable) => RowsOfTable,
  ): ShownTable | null {
    // The columns and relations of an interface depend on the row.
    if (!isObjectType(selected.type)) return null;
    const { pg } = extensions ?? {};
    const table = pg && this.#catalog.findTable({ schema: pg.schemaName, name: pg.name });
    if (table?.kind !== "table" || !table.primaryKey.every((column) => codec.attributes[column]?.notNull)) return null;
    const members = this.#selected(selected).flatMap(({ key, field }): [string, string][] => {
      const source = sourceOf(field);
      return source?.kind === "column" && isPlain(source.codec) ? [[source.column, key]] : [];
    });
    const { oid: relation, primaryKey: key } = table;
    return { relation, key, members: new Map(members), related: this.of(selected), ...of(table) };
  }

  #selected({ type, selections }: Selected) {
    return [...this.#values.fieldsOf(type, selections)].flatMap(([key, nodes]) => {
      const field = type.getFields()[nodes[0]!.name.value];
      return field ? [{ ...selectedBy(field, nodes), key, field }] : [];
    });
  }
}

function selectedBy(field: GraphQLField<unknown, unknown>, nodes: readonly FieldNode[]): Selected {
  const selections = nodes.flatMap(({ selectionSet }) => selectionSet ?? []);
  return { type: getNamedType(field.type) as GraphQLObjectType, selections };
}

function rowsOf(
  { conditionFields, orderOf }: Source<"rows">,
  { field, args }: ObjectField,
  table: CatalogTable,
  { rows, isReversed, isIndependent, reads, remainders }: ReadOfRows,
): RowsOfTable {
  const where = hasRowArgument(field, "where") ? args.where : null;
  const compared = [
    ...filteredColumns(field.args, args),
    ...(where ? columnComparisonsOf(conditionFields(), where as InputObject) : []),
  ];
  const orderBy = hasRowArgument(field, "orderBy") ? args.orderBy : null;
  const [first] = orderOf(orderBy, { bind: bindWithCodec, constantOf: (value) => value }).terms;
  const order = isIndependent && first ? orderedColumnOf(first, isReversed) : null;
  const page = order && toShownPage(table, order, { rows, isReversed });
  return { comparisons: toComparisons(table.oid, compared), isIndependent, page, reads, remainders };
}

/** The columns that have the values of arguments, or of fields of an argument. */
function filteredColumns(
  inputs: readonly (GraphQLArgument | GraphQLInputField)[],
  values: InputObject,
): ColumnValueComparison[] {
  return inputs.flatMap((input): ColumnValueComparison[] => {
    const value = Object.hasOwn(values, input.name) ? values[input.name] : null;
    const [filter, type] = [rowFilterOf(input), getNamedType(input.type)];
    if (value == null || isRowArgument(input)) return [];
    if (filter?.column) return [{ column: filter.column, codec: filter.codec, operator: "eq", value }];
    const isInput = filter === null && isInputObjectType(type);
    return isInput ? filteredColumns(Object.values(type.getFields()), value as InputObject) : [];
  });
}

/** The column of a term, in the order in which the page was read. */
function orderedColumnOf({ by, relations = [], direction, nulls }: RowOrder["terms"][number], isReversed: boolean) {
  if (typeof by !== "string" || relations.length > 0) return null;
  const areNullsLast = nulls === undefined ? direction === "ASC" : nulls === "LAST";
  const isDescending = direction === "DESC";
  return { column: by, isDescending: isDescending !== isReversed, areNullsLast: areNullsLast !== isReversed };
}

/** Converts comparisons. Null values are left out, since null equals nothing. */
function toComparisons(relation: number, comparisons: readonly ColumnValueComparison[]): ColumnComparison[] {
  return comparisons.flatMap(({ column, codec, operator, value }): ColumnComparison[] => {
    if (!isPlain(codec)) return [];
    const given = [value].flat().filter((each) => each != null);
    const values = given
      .map((each) => codec.toPg(each) as unknown)
      .flatMap((each) => (each == null ? [] : String(each)));
    if (operator === "eq" || operator === "in") return [{ relation, column, operator: "eq", values }];
    return values.length === 1 ? [{ relation, column, operator, values }] : [];
  });
}

function joinsOf({ localAttributes, remoteAttributes }: PgRelation, table: ShownTable | null): ShownRelation["joins"] {
  if (!table) return [];
  const { relation } = table;
  return localAttributes.map((parentColumn, index) => ({ relation, column: remoteAttributes[index]!, parentColumn }));
}

function isPlain(codec: Codec): boolean {
  return PLAIN_CODECS.has(baseCodecOf(toOriginalCodec(codec)));
}

function isPart(field: GraphQLField<unknown, unknown>, part: PagePart): boolean {
  const source = sourceOf(field);
  return source?.kind === "page" && source.part === part;
}

function countOf({ args }: ObjectField, name: string): number | null | undefined {
  return args[name] as number | null | undefined;
}
