import { generatePgParameterAnalysis, type PgSelectArgumentDigest, pgFromExpressionRuntime } from "@dataplan/pg";
import { type SQL, sql } from "@dataplan/pg/pg-sql2";
import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLField,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLSchema,
  getNamedType,
  getNullableType,
  isAbstractType,
  isListType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
  OperationTypeNode,
  type SelectionSetNode,
} from "grafast/graphql";
import type { ParameterValue } from "../../engine/database/statement.ts";
import { type FieldSource, type PagePart, type RowFilter, rowFilterOf, sourceOf } from "../field-sources.ts";
import { orderExpressionsOf, readLimit, readOffset, readPage } from "../PaginationPlugin.ts";
import { toPgText } from "../server/pg-client.ts";
import type { PgRelation, PgTable, SchemaResource } from "../table.ts";
import {
  beyondCursor,
  concatenate,
  cursorSql,
  jsonArrayOf,
  PageParts,
  type PageQuery,
  type RowsQuery,
  selectRows,
} from "./collection-sql.ts";
import { NotCompiled } from "./not-compiled.ts";
import {
  type CoercedVariables,
  type InputValue,
  OperationValues,
  type Parameter,
  parameterSql,
} from "./operation-values.ts";
import { orNull, spellValue, textLiteral } from "./spell-value.ts";

/** One statement that returns the text of `data`. */
export type CompiledOperation = {
  readonly text: string;
  readonly parameters: readonly (Parameter | ParameterValue)[];
  /** The text holds JSON of the database, which must be written again in JavaScript's format. */
  readonly holdsJson: boolean;
  readonly rootFields: readonly RootField[];
};

export type RootField = {
  readonly key: string;
  readonly nodes: readonly FieldNode[];
  readonly type: GraphQLOutputType;
};

/** Deeper statements take Postgres longer to plan than Grafast takes. */
const MAX_TEXT_LENGTH = 200_000;

type Source<Kind extends FieldSource["kind"]> = Extract<FieldSource, { readonly kind: Kind }>;
type Field = GraphQLField<unknown, unknown>;

type CompileOptions = {
  readonly schema: GraphQLSchema;
  readonly document: DocumentNode;
  readonly operation: OperationDefinitionNode;
  readonly variables: CoercedVariables;
  /** Receives the names of variables whose values are part of the text. */
  readonly fixed: Set<string>;
};

/** Throws NotCompiled for an operation that has a field without a source, or a value that SQL cannot spell. */
export function compileOperation({ schema, document, operation, variables, fixed }: CompileOptions): CompiledOperation {
  if (operation.operation !== OperationTypeNode.QUERY) throw new NotCompiled(operation.operation as "mutation", "");
  const compiler = new OperationCompiler(schema, document, new OperationValues(variables, fixed));
  const rootFields: RootField[] = [];
  const data = compiler.root(schema.getQueryType()!, operation.selectionSet, rootFields);
  const { text, values } = sql.compile(sql`select ${data}`);
  if (text.length > MAX_TEXT_LENGTH) throw new NotCompiled("size", String(text.length));
  const parameters = (values as unknown[]).map((value) =>
    typeof value === "function" ? (value as Parameter) : toPgText(value),
  );
  return { text, parameters, holdsJson: compiler.holdsJson, rootFields };
}

class OperationCompiler {
  readonly #schema: GraphQLSchema;
  readonly #fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  readonly #values: OperationValues;
  holdsJson = false;

  constructor(schema: GraphQLSchema, { definitions }: DocumentNode, values: OperationValues) {
    this.#schema = schema;
    const fragments = definitions.filter((definition) => definition.kind === Kind.FRAGMENT_DEFINITION);
    this.#fragments = new Map(fragments.map((fragment) => [fragment.name.value, fragment]));
    this.#values = values;
  }

  root(type: GraphQLObjectType, selections: SelectionSetNode, fields: RootField[]): SQL {
    return this.#objectOf(type, [selections], (field, nodes, key) => {
      fields.push({ key, nodes, type: field.type });
      return this.#field(type, field, nodes, null);
    });
  }

  /** A JSON object with the selected fields, as text; never null. */
  #object(type: GraphQLObjectType, selections: readonly SelectionSetNode[], row: SQL): SQL {
    return this.#objectOf(type, selections, (field, nodes) => this.#field(type, field, nodes, row));
  }

  #objectOf(
    type: GraphQLObjectType,
    selections: readonly SelectionSetNode[],
    spell: (field: Field, nodes: readonly FieldNode[], key: string) => SQL,
  ): SQL {
    const pieces = [...this.#fieldsOf(type, selections)].flatMap(([key, nodes], index) => {
      const name = nodes[0]!.name.value;
      const opening = `${index === 0 ? "{" : ","}"${key}":`;
      if (name === "__typename") return [textLiteral(`${opening}"${type.name}"`)];
      if (name.startsWith("__")) throw new NotCompiled("introspection", name);
      return [textLiteral(opening), spell(type.getFields()[name]!, nodes, key)];
    });
    if (pieces.length === 0) return textLiteral("{}");
    return concatenate([...pieces, textLiteral("}")]);
  }

  /** The selected fields by response key, in the order of their first selection. */
  #fieldsOf(
    type: GraphQLObjectType,
    selections: readonly SelectionSetNode[],
    found = new Map<string, FieldNode[]>(),
    spread = new Set<string>(),
  ): Map<string, FieldNode[]> {
    for (const selection of selections.flatMap((set) => set.selections)) {
      if (this.#values.isExcluded(selection.directives)) continue;
      if (selection.kind === Kind.FIELD) {
        const key = (selection.alias ?? selection.name).value;
        const nodes = found.get(key);
        if (nodes) nodes.push(selection);
        else found.set(key, [selection]);
        continue;
      }
      const isSpread = selection.kind === Kind.FRAGMENT_SPREAD;
      if (isSpread && spread.has(selection.name.value)) continue;
      if (isSpread) spread.add(selection.name.value);
      const fragment = isSpread ? this.#fragments.get(selection.name.value)! : selection;
      if (this.#applies(fragment.typeCondition?.name.value, type))
        this.#fieldsOf(type, [fragment.selectionSet], found, spread);
    }
    return found;
  }

  #applies(condition: string | undefined, type: GraphQLObjectType): boolean {
    if (condition === undefined || condition === type.name) return true;
    const other = this.#schema.getType(condition);
    return isAbstractType(other) && this.#schema.isSubType(other, type);
  }

  #field(parent: GraphQLObjectType, field: Field, nodes: readonly FieldNode[], row: SQL | null): SQL {
    const source = sourceOf(field);
    if (!source) throw new NotCompiled("field", `${parent.name}.${field.name}`);
    switch (source.kind) {
      case "column":
        return this.#leaf(sql`${row!}.${sql.identifier(source.column)}`, source, field);
      case "row":
        return orNull(this.#rowByKey(source, field, nodes), field.type);
      case "related row":
        return orNull(this.#relatedRow(source, field, nodes, row!), field.type);
      case "rows":
        return source.isConnection ? this.#connection(source, field, nodes) : this.#list(source, field, nodes, row);
      case "call":
        return this.#call(source, field, nodes, row);
      case "page":
        throw new NotCompiled("field", `${parent.name}.${field.name}`);
    }
  }

  #leaf(value: SQL, { codec }: Pick<Source<"column">, "codec">, { type }: Pick<Field, "type">): SQL {
    const { text, holdsJson } = spellValue(value, codec, type);
    if (holdsJson) this.holdsJson = true;
    return orNull(text, type);
  }

  /** The selected fields of a row that the field returns. */
  #item(type: GraphQLOutputType, nodes: readonly FieldNode[], row: SQL): SQL {
    return this.#object(objectTypeOf(type), selectionsOf(nodes), row);
  }

  /** Null where the row is null. */
  #tableItem(table: PgTable, type: GraphQLOutputType, nodes: readonly FieldNode[], row: SQL): SQL {
    const item = this.#item(type, nodes, row);
    return mayBeNullRow(table) ? sql`case when ${presence(table, row)} then ${item} end` : item;
  }

  #rowByKey({ table, key }: Source<"row">, field: Field, nodes: readonly FieldNode[]): SQL {
    const args = this.#values.argumentsOf(field, nodes[0]!);
    const row = aliasOf(table);
    const conditions = key.map(({ column, argument }) => {
      const value = parameterSql(args.get(argument)!, table.codec.attributes[column]!.codec);
      return sql`${row}.${sql.identifier(column)} = ${value}`;
    });
    return sql`(${selectRows(rowsOf(table, row, conditions), this.#tableItem(table, field.type, nodes, row))})`;
  }

  #relatedRow({ relation }: Source<"related row">, field: Field, nodes: readonly FieldNode[], parent: SQL): SQL {
    const table = tableOf(relation);
    const row = aliasOf(table);
    const query = rowsOf(table, row, joinConditions(relation, parent, row));
    return sql`(${selectRows(query, this.#tableItem(table, field.type, nodes, row))})`;
  }

  #list(source: Source<"rows">, field: Field, nodes: readonly FieldNode[], parent: SQL | null): SQL {
    const { table, relation, order, maxPageSize } = source;
    const node = nodes[0]!;
    const args = this.#values.argumentsOf(field, node);
    const row = aliasOf(table);
    const conditions = relation ? joinConditions(relation, parent!, row) : [];
    const query: RowsQuery = {
      ...rowsOf(table, row, conditions),
      order: orderExpressionsOf(row, table, order),
      limit: readLimit(this.#values.count("limit", node, args.get("limit")), maxPageSize),
      offset: readOffset(this.#values.count("offset", node, args.get("offset"))),
    };
    const item = this.#tableItem(table, itemTypeOf(field.type), nodes, row);
    return jsonArrayOf(query, orNull(item, itemTypeOf(field.type)));
  }

  #connection(source: Source<"rows">, field: Field, nodes: readonly FieldNode[]): SQL {
    const { table, maxPageSize } = source;
    const node = nodes[0]!;
    const args = this.#values.argumentsOf(field, node);
    const count = (name: string) => this.#values.count(name, node, args.get(name));
    const { first, last } = readPage(count("first"), count("last"), maxPageSize);
    const [after, before] = [args.get("after")!, args.get("before")!];
    const [hasAfter, hasBefore] = [after.kind === "leaf", before.kind === "leaf"];
    if ((first !== null && hasBefore) || (last !== null && hasAfter)) throw new NotCompiled("argument", "cursor");

    const row = aliasOf(table);
    const page: PageQuery = {
      table,
      order: source.order,
      row,
      conditions: this.#filters(field, args, row),
      cursor: hasAfter ? after : hasBefore ? before : null,
      isReverse: last !== null,
      size: (first ?? last)!,
      hasAfter,
      hasBefore,
    };
    return this.#page(page, objectTypeOf(field.type), selectionsOf(nodes));
  }

  /** Each filter once, as an argument or within `filter`. */
  #filters({ args: defined }: Field, args: ReadonlyMap<string, InputValue>, row: SQL): SQL[] {
    return defined.flatMap((argument) => {
      const value = args.get(argument.name)!;
      const filter = rowFilterOf(argument);
      if (filter) return conditionOf(filter, value, row);
      if (value.kind !== "object") return [];
      const type = getNamedType(argument.type);
      const fields = "getFields" in type ? Object.values(type.getFields()) : [];
      return fields.flatMap((field) => {
        const given = value.fields.get(field.name)!;
        const ofField = rowFilterOf(field);
        if (!ofField && given.kind !== "absent") throw new NotCompiled("argument", field.name);
        return ofField ? conditionOf(ofField, given, row) : [];
      });
    });
  }

  /**
   * The rows of the page are read once, as arrays of the texts that its parts are made of: an array per `edges`, and one of cursors for
   * `pageInfo`.
   */
  #page(page: PageQuery, type: GraphQLObjectType, selections: readonly SelectionSetNode[]): SQL {
    const { table, row, conditions, cursor, isReverse, size } = page;
    const rows = sql.identifier(Symbol("page"));
    const outputs: SQL[] = [];
    const arrayOf = (output: SQL) => {
      outputs.push(output);
      return sql`${rows}.${sql.identifier(`texts${outputs.length}`)}`;
    };
    const parts = new PageParts(page, arrayOf);
    const object = this.#objectOf(type, selections, (field, nodes) => {
      switch (partOf(type, field)) {
        case "edges":
          return parts.items(this.#edge(page, objectTypeOf(field.type), selectionsOf(nodes)));
        case "pageInfo":
          return this.#pageInfo(parts, objectTypeOf(field.type), selectionsOf(nodes));
        case "totalCount":
          return sql`(${selectRows(rowsOf(table, row, conditions), sql`count(*)::text`)})`;
        default:
          throw new NotCompiled("field", `${type.name}.${field.name}`);
      }
    });
    // Where no part of the page is selected, its arguments and privileges are checked all the same.
    if (outputs.length === 0) arrayOf(textLiteral(""));
    const order = orderExpressionsOf(row, table, page.order);
    const query: RowsQuery = {
      row,
      from: table.from as SQL,
      conditions: [...conditions, ...(cursor ? [beyondCursor(table, page.order, row, cursor, isReverse)] : [])],
      order: isReverse ? order.map(reversed) : order,
      limit: parts.looksAhead ? size + 1 : size,
      offset: 0,
    };
    const named = outputs.map((output, index) => sql`${output} as ${sql.identifier(`text${index + 1}`)}`);
    const read = sql.identifier(Symbol("read"));
    const arrays = outputs.map(
      (_, index) =>
        sql`coalesce(array_agg(${read}.${sql.identifier(`text${index + 1}`)}), '{}') as ${sql.identifier(`texts${index + 1}`)}`,
    );
    const selected = selectRows(query, sql.join(named, ", "));
    return sql`(select ${object} from (select ${sql.join(arrays, ", ")} from (${selected}) as ${read}) as ${rows})`;
  }

  #edge({ table, order, row }: PageQuery, type: GraphQLObjectType, selections: readonly SelectionSetNode[]): SQL {
    return this.#objectOf(type, selections, (field, nodes) => {
      switch (partOf(type, field)) {
        case "node":
          return orNull(this.#tableItem(table, field.type, nodes, row), field.type);
        case "cursor":
          return cursorSql(table, order, row);
        default:
          throw new NotCompiled("field", `${type.name}.${field.name}`);
      }
    });
  }

  #pageInfo(parts: PageParts, type: GraphQLObjectType, selections: readonly SelectionSetNode[]): SQL {
    return this.#objectOf(type, selections, (field) => {
      const value = parts.info(partOf(type, field));
      if (value === null) throw new NotCompiled("field", `${type.name}.${field.name}`);
      return value;
    });
  }

  #call(source: Source<"call">, field: Field, nodes: readonly FieldNode[], parent: SQL | null): SQL {
    const { resource, maxPageSize } = source;
    const row = sql.identifier(Symbol(resource.name));
    const from = this.#callSql(source, field, nodes[0]!, parent);
    const isRow = Boolean(resource.codec.attributes);
    if (!isRow && resource.isUnique) return this.#leaf(from, resource, field);
    const alias = isRow ? row : sql`${row}(v)`;
    const query = {
      row: alias,
      from,
      conditions: [],
      order: [],
      limit: resource.isUnique ? null : maxPageSize,
      offset: 0,
    };
    if (resource.isUnique) {
      const present = { ...query, conditions: [presence(resource, row)] };
      return orNull(sql`(${selectRows(present, this.#item(field.type, nodes, row))})`, field.type);
    }
    const type = itemTypeOf(field.type);
    if (!isRow) return jsonArrayOf(query, this.#leaf(sql`${row}.v`, resource, { type }));
    const item = sql`case when ${presence(resource, row)} then ${this.#item(type, nodes, row)} end`;
    return jsonArrayOf(query, orNull(item, type));
  }

  #callSql({ resource, args, ofRow }: Source<"call">, field: Field, node: FieldNode, parent: SQL | null): SQL {
    const { from, parameters } = resource;
    if (typeof from !== "function") throw new NotCompiled("field", field.name);
    const given = this.#values.argumentsOf(field, node);
    const digests = args.map(({ argument, name, codec }): Digest => {
      const value = given.get(argument)!;
      const own = name === undefined ? {} : { name };
      return value.kind === "absent"
        ? { ...own, value: undefined }
        : { ...own, placeholder: parameterSql(value, codec) };
    });
    const all = ofRow ? [{ placeholder: parent! }, ...digests] : digests;
    return pgFromExpressionRuntime(from, parameters, all as Digest[], generatePgParameterAnalysis(parameters));
  }
}

type Digest = Parameters<typeof pgFromExpressionRuntime>[2][number] & Partial<PgSelectArgumentDigest>;

function reversed<Term extends { readonly direction: "ASC" | "DESC" }>(term: Term): Term {
  return { ...term, direction: term.direction === "ASC" ? "DESC" : "ASC" };
}

function partOf(type: GraphQLObjectType, field: Field): PagePart {
  const source = sourceOf(field);
  if (source?.kind !== "page") throw new NotCompiled("field", `${type.name}.${field.name}`);
  return source.part;
}

function conditionOf({ condition, codec, isItem }: RowFilter, value: InputValue, row: SQL): SQL[] {
  if (value.kind === "absent" || value.kind === "null") return [];
  return [condition(row, parameterSql(value, codec, isItem && ((item) => [item])))];
}

function rowsOf(table: PgTable, row: SQL, conditions: readonly SQL[]): RowsQuery {
  return { row, from: table.from as SQL, conditions, order: [], limit: null, offset: 0 };
}

function aliasOf({ name }: PgTable): SQL {
  return sql.identifier(Symbol(name));
}

function tableOf({ remoteResource }: PgRelation): PgTable {
  return remoteResource as PgTable;
}

function joinConditions({ localAttributes, remoteAttributes }: PgRelation, parent: SQL, row: SQL): SQL[] {
  return localAttributes.map(
    (column, index) => sql`${row}.${sql.identifier(remoteAttributes[index]!)} = ${parent}.${sql.identifier(column)}`,
  );
}

/** Whether a function's row is not null; so may be the row of a view without a column that is not null. */
function presence(resource: SchemaResource, row: SQL): SQL {
  const check = (resource as object as NullCheckedResource).getNullCheckExpression(row);
  return check ? sql`(${check})::bool` : sql`true`;
}

/** Internal in core's types. */
type NullCheckedResource = { getNullCheckExpression(row: SQL): SQL | null };

function mayBeNullRow({ codec }: PgTable): boolean {
  return !codec.notNullExpression && !Object.values(codec.attributes).some(({ notNull }) => notNull);
}

function selectionsOf(nodes: readonly FieldNode[]): SelectionSetNode[] {
  return nodes.flatMap(({ selectionSet }) => selectionSet ?? []);
}

function itemTypeOf(type: GraphQLOutputType): GraphQLOutputType {
  const list = getNullableType(type);
  if (!isListType(list)) throw new NotCompiled("type", String(type));
  return list.ofType;
}

function objectTypeOf(type: GraphQLOutputType): GraphQLObjectType {
  const named = getNamedType(type);
  if (!isObjectType(named)) throw new NotCompiled("type", named.name);
  return named;
}
