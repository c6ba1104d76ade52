import { generatePgParameterAnalysis, type PgSelectArgumentDigest, pgFromExpressionRuntime } from "@dataplan/pg";
import { type SQL, sql } from "@dataplan/pg/pg-sql2";
import {
  type DocumentNode,
  type FieldNode,
  type GraphQLArgument,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLSchema,
  GraphQLString,
  type OperationDefinitionNode,
  OperationTypeNode,
  type SelectionSetNode,
} from "grafast/graphql";
import type { ParameterValue } from "../../engine/database/statement.ts";
import { type FieldSource, type FunctionArgument, type PagePart, sourceOf } from "../field-sources.ts";
import { keepResult, resultRows } from "../function-call.ts";
import { orderExpressionsOf, readLimit, readOffset, readPage } from "../PaginationPlugin.ts";
import { toPgText } from "../server/pg-client.ts";
import type { PgTable, SchemaResource } from "../table.ts";
import {
  aliasOf,
  beyondCursor,
  concatenate,
  cursorSql,
  joinConditions,
  jsonArrayOf,
  mayBeNullRow,
  PageParts,
  type PageQuery,
  presence,
  type RowsSelect,
  reversed,
  selectRows,
  tableOf,
} from "./collection-sql.ts";
import { NotCompiled } from "./not-compiled.ts";
import {
  ABSENT,
  type CoercedVariables,
  type InputValue,
  OperationValues,
  type Parameter,
  parameterSql,
} from "./operation-values.ts";
import { isCollectionArgument, orderOf, rowConditions } from "./row-arguments.ts";
import { compileRowWrite, type RowWrite } from "./row-write.ts";
import { type Field, itemTypeOf, objectTypeOf, SelectionReader, selectionsOf } from "./selection-reader.ts";
import { orNull, spellValue, textLiteral } from "./spell-value.ts";

/** A query, or one field of a mutation: a statement that returns the text of these fields of `data`. */
export type CompiledStep = CompiledStatement & {
  /** The document for Grafast, when it must repeat the step. */
  readonly document: DocumentNode;
  /** The call of a mutation's function, or the write of a row, sent first in the same transaction. */
  readonly before: CompiledStatement | null;
  /** The row that it writes, by this statement or the one before. Null: it writes by a function, or reads. */
  readonly write: RowWrite | null;
  /** The text holds JSON of the database, which must be written again in JavaScript's format. */
  readonly holdsJson: boolean;
  readonly rootFields: readonly RootField[];
};

/** Run one after the other. Each field of a mutation is a transaction of its own. */
export type CompiledOperation = readonly CompiledStep[];

export type CompiledStatement = {
  readonly text: string;
  readonly parameters: readonly (Parameter | ParameterValue)[];
};

export type RootField = {
  readonly key: string;
  readonly nodes: readonly FieldNode[];
  readonly type: GraphQLOutputType;
  /** The value of `__typename`, which does not fail. */
  readonly constant?: string;
};

/** Deeper statements take Postgres longer to plan than Grafast takes. */
const MAX_TEXT_LENGTH = 200_000;

/** One statement would build larger responses in the memory of Postgres; Grafast reads level by level, and ends when one is too large. */
const MAX_ROWS = 10_000_000;

type Source<Kind extends FieldSource["kind"]> = Extract<FieldSource, { readonly kind: Kind }>;

type CompileOptions = {
  readonly schema: GraphQLSchema;
  readonly document: DocumentNode;
  readonly operation: OperationDefinitionNode;
  readonly variables: CoercedVariables;
  /** Receives the names of variables whose values are part of the text. */
  readonly fixed: Set<string>;
};

/** Throws NotCompiled for an operation that has a field without a source, or a value that SQL cannot spell. */
export function compileOperation(options: CompileOptions): CompiledOperation {
  const { schema, document, operation, variables, fixed } = options;
  if (operation.operation === OperationTypeNode.SUBSCRIPTION) throw new NotCompiled("subscription", "");
  const type = schema.getRootType(operation.operation)!;
  const values = new OperationValues(variables, fixed);
  const selections = new SelectionReader(schema, document, values);
  const fields = [...selections.fieldsOf(type, [operation.selectionSet])];
  if (fields.every(([, nodes]) => isTypename(nodes))) {
    throw new NotCompiled("introspection", "It reads nothing of the database.");
  }
  const compileStep = (own: readonly SelectedField[], whole: DocumentNode): CompiledStep => {
    const compiler = new OperationCompiler(selections, values);
    const rootFields: RootField[] = [];
    const data = compiler.root(type, own, rootFields);
    const { call, write, holdsJson } = compiler;
    const statement = toStatement(write ? write.statementOf(data) : sql`select ${data}`);
    const before = write ? write.before : call;
    return { ...statement, document: whole, before: before && toStatement(before), write, holdsJson, rootFields };
  };
  if (type !== schema.getMutationType()) return [compileStep(fields, document)];
  const groups = oneFieldEach(fields);
  if (groups.length === 1) return [compileStep(fields, document)];
  return groups.map((own) => compileStep(own, withFields(options, own)));
}

type SelectedField = readonly [key: string, nodes: readonly FieldNode[]];

/** With each field the `__typename` before it, and with the last one those after it. */
function oneFieldEach(fields: readonly SelectedField[]): SelectedField[][] {
  const groups: SelectedField[][] = [[]];
  for (const field of fields) {
    if (!isTypename(field[1]) && groups.at(-1)!.some(([, nodes]) => !isTypename(nodes))) groups.push([]);
    groups.at(-1)!.push(field);
  }
  return groups;
}

function isTypename(nodes: readonly FieldNode[]): boolean {
  return nodes[0]!.name.value === "__typename";
}

/** The document with these fields of the operation only. */
function withFields({ document, operation }: CompileOptions, fields: readonly SelectedField[]): DocumentNode {
  const selections = fields.flatMap(([, nodes]) => nodes);
  const own = { ...operation, selectionSet: { ...operation.selectionSet, selections } };
  return { ...document, definitions: document.definitions.map((each) => (each === operation ? own : each)) };
}

function toStatement(whole: SQL): CompiledStatement {
  const { text, values } = sql.compile(whole);
  if (text.length > MAX_TEXT_LENGTH) throw new NotCompiled("size", String(text.length));
  const parameters = (values as unknown[]).map((value) =>
    typeof value === "function" ? (value as Parameter) : toPgText(value),
  );
  return { text, parameters };
}

class OperationCompiler {
  readonly #selections: SelectionReader;
  readonly #values: OperationValues;
  holdsJson = false;
  /** The statement that calls a mutation's function. */
  call: SQL | null = null;
  /** The row that a generated mutation writes. */
  write: RowWrite | null = null;
  /** The limits of the lists around a field, multiplied. */
  #rowsAround = 1;
  /** What the limits of all lists allow. */
  #rowsAtMost = 0;

  constructor(selections: SelectionReader, values: OperationValues) {
    this.#selections = selections;
    this.#values = values;
  }

  root(type: GraphQLObjectType, selected: readonly SelectedField[], fields: RootField[]): SQL {
    for (const [key, nodes] of selected) {
      const field = type.getFields()[nodes[0]!.name.value];
      if (field) fields.push({ key, nodes, type: field.type });
      else fields.push({ key, nodes, type: GraphQLString, constant: type.name });
    }
    return this.#objectOfFields(type, selected, (field, nodes) => this.#field(type, field, nodes, null));
  }

  /** A JSON object with the selected fields, as text; never null. */
  #object(type: GraphQLObjectType, selections: readonly SelectionSetNode[], row: SQL): SQL {
    return this.#objectOf(type, selections, (field, nodes) => this.#field(type, field, nodes, row));
  }

  #objectOf(
    type: GraphQLObjectType,
    selections: readonly SelectionSetNode[],
    spell: (field: Field, nodes: readonly FieldNode[]) => SQL,
  ): SQL {
    return this.#objectOfFields(type, [...this.#selections.fieldsOf(type, selections)], spell);
  }

  #objectOfFields(
    type: GraphQLObjectType,
    fields: readonly SelectedField[],
    spell: (field: Field, nodes: readonly FieldNode[]) => SQL,
  ): SQL {
    const pieces = fields.flatMap(([key, nodes], index) => {
      const name = nodes[0]!.name.value;
      const opening = `${index === 0 ? "{" : ","}"${key}":`;
      if (isTypename(nodes)) return [textLiteral(`${opening}"${type.name}"`)];
      if (name.startsWith("__")) throw new NotCompiled("introspection", name);
      return [textLiteral(opening), spell(type.getFields()[name]!, nodes)];
    });
    if (pieces.length === 0) return textLiteral("{}");
    return concatenate([...pieces, textLiteral("}")]);
  }

  #field(parent: GraphQLObjectType, field: Field, nodes: readonly FieldNode[], row: SQL | null): SQL {
    const source = sourceOf(field);
    if (!source) throw new NotCompiled("field", `${parent.name}.${field.name}`);
    switch (source.kind) {
      case "column":
        return this.#column(sql`${row!}.${sql.identifier(source.column)}`, source, field, nodes);
      case "row":
        return orNull(this.#rowByKey(source, field, nodes), field.type);
      case "related row":
        return orNull(this.#relatedRow(source, field, nodes, row!), field.type);
      case "rows":
        return source.isConnection ? this.#connection(source, field, nodes) : this.#list(source, field, nodes, row);
      case "call":
        return this.#call(source, field, nodes, row);
      case "mutation":
        return this.#mutation(source, field, nodes);
      case "write":
        return this.#write(source, field, nodes);
      case "page":
        throw new NotCompiled("field", `${parent.name}.${field.name}`);
    }
  }

  /** A scalar, a row of a table, a composite value, or a list of these values. */
  #column(value: SQL, { codec, table }: Source<"column">, field: Field, nodes: readonly FieldNode[]): SQL {
    if (table) {
      const row = sql.identifier(Symbol(table.name));
      const item = this.#item(field.type, nodes, row);
      return orNull(
        sql`(select ${item} from unnest(array[${value}]) as ${row} where ${presence(table, row)})`,
        field.type,
      );
    }
    if (codec.attributes) return orNull(this.#composite(value, field.type, nodes), field.type);
    if (codec.arrayOfCodec?.extensions?.isTableLike !== false) return this.#leaf(value, { codec }, field);
    const items = sql.identifier(Symbol("items"));
    const type = itemTypeOf(field.type);
    const item = orNull(this.#composite(sql`${items}."item"`, type, nodes), type);
    const list = sql`(select concat('[', string_agg(${item}, ','), ']') from (select unnest(${value}) as "item") as ${items})`;
    return orNull(sql`case when ${value} is not null then ${list} end`, field.type);
  }

  #composite(value: SQL, type: GraphQLOutputType, nodes: readonly FieldNode[]): SQL {
    return sql`case when ${value} is distinct from null then ${this.#item(type, nodes, sql`(${value})`)} end`;
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
    const args = this.#values.argumentsOf(field, nodes[0]!, isOneOf(key));
    const row = aliasOf(table);
    const conditions = key.map(({ column, argument }) => {
      const value = parameterSql(args.get(argument)!, table.codec.attributes[column]!.codec);
      return sql`${row}.${sql.identifier(column)} = ${value}`;
    });
    return sql`(${selectRows(rowsOf(table, row, conditions), this.#tableItem(table, field.type, nodes, row))})`;
  }

  #relatedRow({ relation }: Source<"related row">, field: Field, nodes: readonly FieldNode[], parent: SQL): SQL {
    const table = tableOf(relation);
    this.#values.argumentsOf(field, nodes[0]!, () => false);
    const row = aliasOf(table);
    const query = rowsOf(table, row, joinConditions(relation, parent, row));
    return sql`(${selectRows(query, this.#tableItem(table, field.type, nodes, row))})`;
  }

  #list(source: Source<"rows">, field: Field, nodes: readonly FieldNode[], parent: SQL | null): SQL {
    const { table, relation, maxPageSize } = source;
    const node = nodes[0]!;
    const isKnown = (argument: GraphQLArgument) => LIST_ARGUMENTS.has(argument.name) || isCollectionArgument(argument);
    const args = this.#values.argumentsOf(field, node, isKnown);
    const count = (name: string) => this.#values.constant(name, node, args.get(name)) as number | null;
    const row = aliasOf(table);
    const conditions = relation ? joinConditions(relation, parent!, row) : [];
    const query: RowsSelect = {
      ...rowsOf(table, row, [...conditions, ...rowConditions(source, field, args, row)]),
      order: orderExpressionsOf(row, table, orderOf(source, field, node, args, this.#values)),
      limit: readLimit(count("limit"), maxPageSize),
      offset: readOffset(count("offset")),
    };
    const item = this.#eachOf(query.limit, () => this.#tableItem(table, itemTypeOf(field.type), nodes, row));
    return jsonArrayOf(query, orNull(item, itemTypeOf(field.type)));
  }

  /** The fields of each row of a list. */
  #eachOf(limit: number | null, compile: () => SQL): SQL {
    const around = this.#rowsAround;
    this.#rowsAround *= limit ?? 1;
    this.#rowsAtMost += this.#rowsAround;
    if (this.#rowsAtMost > MAX_ROWS) throw new NotCompiled("size", `Its limits allow more than ${MAX_ROWS} rows.`);
    const fields = compile();
    this.#rowsAround = around;
    return fields;
  }

  #connection(source: Source<"rows">, field: Field, nodes: readonly FieldNode[]): SQL {
    const { table, maxPageSize } = source;
    const node = nodes[0]!;
    const isKnown = (argument: GraphQLArgument) => PAGE_ARGUMENTS.has(argument.name) || isCollectionArgument(argument);
    const args = this.#values.argumentsOf(field, node, isKnown);
    const count = (name: string) => this.#values.constant(name, node, args.get(name)) as number | null;
    const { first, last } = readPage(count("first"), count("last"), maxPageSize);
    const [after, before] = [args.get("after")!, args.get("before")!];
    const [hasAfter, hasBefore] = [after.kind === "leaf", before.kind === "leaf"];
    if ((first !== null && hasBefore) || (last !== null && hasAfter)) throw new NotCompiled("argument", "cursor");

    const row = aliasOf(table);
    const page: PageQuery = {
      table,
      order: orderOf(source, field, node, args, this.#values),
      row,
      conditions: rowConditions(source, field, args, row),
      cursor: hasAfter ? after : hasBefore ? before : null,
      isReverse: last !== null,
      size: (first ?? last)!,
      hasAfter,
      hasBefore,
    };
    return this.#eachOf(page.size, () => this.#page(page, objectTypeOf(field.type), selectionsOf(nodes)));
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
    const query: RowsSelect = {
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
    const { resource, maxPageSize, args, ofRow } = source;
    const given = this.#values.argumentsOf(field, nodes[0]!, isOneOf(args));
    const called = callSql(resource, args, given, ofRow ? parent : null);
    if (!resource.codec.attributes && resource.isUnique) return this.#leaf(called, resource, field);
    return this.#result(resource, called, maxPageSize, field, nodes);
  }

  /** The function is called by a statement before, whose changes this one sees. */
  #mutation({ resource, args }: Source<"mutation">, field: Field, nodes: readonly FieldNode[]): SQL {
    const isKnown = isOneOf([...args, { argument: "input" }]);
    const given = this.#values.argumentsOf(field, nodes[0]!, isKnown);
    const input = given.get("input");
    const values = new Map(given);
    if (input?.kind === "object") for (const [name, value] of input.fields) if (name !== "id") values.set(name, value);
    this.call = keepResult(callSql(resource, args, values, null));
    const row = sql.identifier(Symbol(resource.name));
    const rows = resultRows(resource);
    if (resource.codec.attributes || !resource.isUnique) return this.#result(resource, rows, null, field, nodes);
    const text = this.#leaf(sql`${row}.v`, resource, field);
    return orNull(sql`(select ${text} from ${rows} as ${row}(v))`, field.type);
  }

  #write(source: Source<"write">, field: Field, nodes: readonly FieldNode[]): SQL {
    const values = this.#values.argumentsOf(field, nodes[0]!, isOneOf([...source.key, { argument: "input" }]));
    const { write, value } = compileRowWrite({
      source,
      field,
      values,
      selected: () => {
        const type = objectTypeOf(field.type);
        return { type, fields: this.#selections.fieldsOf(type, selectionsOf(nodes)).values() };
      },
      item: (row) => this.#item(field.type, nodes, row),
    });
    this.write = write;
    return value;
  }

  /** What a function has returned: a row, rows or a list of values. */
  #result(resource: SchemaResource, from: SQL, limit: number | null, field: Field, nodes: readonly FieldNode[]): SQL {
    const row = sql.identifier(Symbol(resource.name));
    const isRow = Boolean(resource.codec.attributes);
    const alias = isRow ? row : sql`${row}(v)`;
    const query = {
      row: alias,
      from,
      conditions: [],
      order: [],
      limit: resource.isUnique ? null : limit,
      offset: 0,
    };
    if (resource.isUnique) {
      const present = { ...query, conditions: [presence(resource, row)] };
      return orNull(sql`(${selectRows(present, this.#item(field.type, nodes, row))})`, field.type);
    }
    const type = itemTypeOf(field.type);
    if (!isRow) return jsonArrayOf(query, this.#leaf(sql`${row}.v`, resource, { type }));
    const fields = this.#eachOf(limit, () => this.#item(type, nodes, row));
    const item = sql`case when ${presence(resource, row)} then ${fields} end`;
    return jsonArrayOf(query, orNull(item, type));
  }
}

function callSql(
  { name, from, parameters }: SchemaResource,
  args: readonly FunctionArgument[],
  given: ReadonlyMap<string, InputValue>,
  row: SQL | null,
): SQL {
  if (typeof from !== "function") throw new NotCompiled("field", name);
  const digests = args.map(({ argument, name: parameter, codec }): Digest => {
    const value = given.get(argument) ?? ABSENT;
    const own = parameter === undefined ? {} : { name: parameter };
    return value.kind === "absent" ? { ...own, value: undefined } : { ...own, placeholder: parameterSql(value, codec) };
  });
  const all = row ? [{ placeholder: row }, ...digests] : digests;
  return pgFromExpressionRuntime(from, parameters, all as Digest[], generatePgParameterAnalysis(parameters));
}

type Digest = Parameters<typeof pgFromExpressionRuntime>[2][number] & Partial<PgSelectArgumentDigest>;

function partOf(type: GraphQLObjectType, field: Field): PagePart {
  const source = sourceOf(field);
  if (source?.kind !== "page") throw new NotCompiled("field", `${type.name}.${field.name}`);
  return source.part;
}

const LIST_ARGUMENTS: ReadonlySet<string> = new Set(["limit", "offset"]);
const PAGE_ARGUMENTS: ReadonlySet<string> = new Set(["first", "last", "after", "before"]);

function isOneOf(args: readonly { readonly argument: string }[]): (argument: GraphQLArgument) => boolean {
  return ({ name }) => args.some(({ argument }) => argument === name);
}

function rowsOf(table: PgTable, row: SQL, conditions: readonly SQL[]): RowsSelect {
  return { row, from: table.from as SQL, conditions, order: [], limit: null, offset: 0 };
}
