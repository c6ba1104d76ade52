import { TYPES } from "@dataplan/pg";
import { type SQL, sql } from "@dataplan/pg/pg-sql2";
import {
  type FieldNode,
  type GraphQLInterfaceType,
  type GraphQLObjectType,
  GraphQLString,
  getNamedType,
  isNonNullType,
  isObjectType,
  type SelectionSetNode,
} from "grafast/graphql";
import {
  type FieldSource,
  failureTextOf,
  fitsInSetting,
  haveValues,
  joinPairs,
  keepResult,
  keyOf,
  orderExpressionsOf,
  ownValueSql,
  type PgTable,
  readLimit,
  readOffset,
  readPage,
  resultRows,
  type SchemaResource,
  sourceOf,
} from "#plugins";
import type { Stepwise } from "#runtime/concurrency";
import {
  aliasOf,
  beyondCursor,
  callSql,
  jsonArrayOf,
  keyConditions,
  mayBeNullRow,
  PageParts,
  type PageQuery,
  presence,
  type RowsSelect,
  reversed,
  rowOf,
  rowsOf,
  selectRows,
  tableOf,
  wholeNumber,
} from "./collection-sql.ts";
import { decodeNodeId, isNode, nodeIdSql } from "./node-id.ts";
import { NotCompiled } from "./not-compiled.ts";
import { argumentValue, eventKeysOf, type InputValue, parameterOf } from "./operation-values.ts";
import {
  isListArgument,
  isOneOf,
  isOrderRequested,
  isPageArgument,
  orderOf,
  rowConditions,
  searchResultSql,
} from "./row-arguments.ts";
import { RowCompiler } from "./row-compiler.ts";
import { compileRowsWrite, compileRowWrite, isRowColumn, type RowWrite, readsOtherRows } from "./row-write.ts";
import {
  type Field,
  isCount,
  itemTypeOf,
  objectTypeOf,
  partOf,
  type RootField,
  type SelectedField,
  selectionsOf,
} from "./selection-reader.ts";
import { textLiteral } from "./spell-value.ts";

/** If the limits of its lists allow more rows, a statement ends as soon as a list is larger than the response may be. */
const MAX_UNBOUNDED_ROWS = 10_000_000;

/** Fields of the same rows, which other statements could read: they fail together, and those within them only where there are rows. */
export type SeparateFields = { readonly fields: readonly FieldNode[]; within(): readonly SeparateFields[] };

type Source<Kind extends FieldSource["kind"]> = Extract<FieldSource, { readonly kind: Kind }>;

/** Writes the SQL of an operation, in steps since large operations take tens of milliseconds. Throws NotCompiled for a field that it does not know. */
export class OperationCompiler extends RowCompiler {
  /** The statement that calls a mutation's function. */
  call: SQL | null = null;
  /** The statement that returns a row if the result of that call says that it was not successful. */
  failureText: string | null = null;
  /** The row that a generated mutation writes. */
  write: RowWrite | null = null;
  /** The selected fields of the operation's field that may fail by themselves. */
  separateFields: readonly SeparateFields[] = [];
  #separate: SeparateFields[] = [];
  /** True if the statement, or the one before, calls a function that may write. */
  callsFunction = false;
  /** True if the mutation creates a user. */
  countsSignUp = false;
  /** The limits of the lists around a field, multiplied. */
  #rowsAround = 1;
  /** The highest number of rows that the limits of all lists allow. */
  #rowsAtMost = 0;
  /** The columns by which the rows of aggregates are grouped. */
  #groups: SQL[] = [];

  root(type: GraphQLObjectType, selected: readonly SelectedField[], fields: RootField[]): Stepwise<SQL> {
    for (const [key, nodes] of selected) {
      const field = type.getFields()[nodes[0]!.name.value];
      if (field) fields.push({ key, nodes, type: field.type });
      else fields.push({ key, nodes, type: GraphQLString, constant: type.name });
    }
    return this.objectOfFields(type, selected, (field, nodes) => {
      if (this.completion) this.separateFields = this.#separateFieldsOf(field, nodes);
      this.#separate = [...this.separateFields];
      return this.#fieldText(type, field, nodes, null);
    });
  }

  #separateFieldsOf(field: Field, nodes: readonly FieldNode[]): readonly SeparateFields[] {
    const source = sourceOf(field);
    if (!source) return [];
    switch (source.kind) {
      case "write":
        return this.#separateWithin(field, nodes, isOfOtherRows, isOfOtherRows);
      case "rows write":
        return this.#separateWithin(field, nodes, isOfOtherRows, isOfAllRows);
      case "mutation":
        return this.#separateWithin(field, nodes, isRowColumn, isOfAllRows);
      case "rows":
        return this.#isOnlyCounted(field, nodes) ? [] : this.#separateWithin(field, nodes, isOfAllRows, isOfAllRows);
      default:
        return [];
    }
  }

  /** True for a page with a size that has nothing but the count. */
  #isOnlyCounted(field: Field, nodes: readonly FieldNode[]): boolean {
    const type = getNamedType(field.type) as GraphQLObjectType;
    if (!this.selections.hasOnly(type, selectionsOf(nodes), isCount)) return false;
    const args = this.values.argumentsOf(field, nodes[0]!, isPageArgument);
    return !["first", "last"].some((name) => this.values.constant(name, nodes[0]!, args.get(name)) === 0);
  }

  /** Those at any depth, but not within one another. */
  #separateWithin(
    field: Field,
    nodes: readonly FieldNode[],
    isSeparate: IsSeparate,
    below: IsSeparate,
  ): SeparateFields[] {
    const type = getNamedType(field.type);
    if (!isObjectType(type)) return [];
    const groups = new Map<unknown, [Field, readonly FieldNode[]][]>();
    const others: SeparateFields[] = [];
    for (const selected of this.selections.fieldsOf(type, selectionsOf(nodes)).values()) {
      const own = type.getFields()[selected[0]!.name.value];
      const source = own && sourceOf(own);
      if (source && isSeparate(source)) {
        const rows = source.kind === "related row" ? source.path.at(-1) : selected[0];
        groups.set(rows, [...(groups.get(rows) ?? []), [own, selected]]);
      } else if (own) others.push(...this.#separateWithin(own, selected, below, below));
    }
    const separate = [...groups.values()].map((fields) => ({
      fields: fields.map(([, [node]]) => node!),
      within: () => fields.flatMap(([own, selected]) => this.#separateWithin(own, selected, below, below)),
    }));
    return [...separate, ...others];
  }

  /** True if the field is separate, as those within it are from then on. */
  #isSeparate(node: FieldNode): boolean {
    const group = this.#separate.find(({ fields }) => fields.includes(node));
    if (group) this.#separate.push(...group.within());
    return group !== undefined;
  }

  protected override *field(
    parent: GraphQLObjectType,
    field: Field,
    nodes: readonly FieldNode[],
    row: SQL | null,
  ): Stepwise<SQL> {
    const completion = this.completion;
    const leftOut = completion?.errorOf(nodes[0]!);
    if (leftOut) return leftOut;
    if (!completion || !this.#isSeparate(nodes[0]!)) return yield* this.#fieldText(parent, field, nodes, row);
    try {
      const text = yield* this.#fieldText(parent, field, nodes, row);
      completion.checkValues(text);
      return text;
    } catch (error) {
      if (error instanceof NotCompiled || !(error instanceof Error)) throw error;
      return completion.failure(error);
    }
  }

  *#fieldText(parent: GraphQLObjectType, field: Field, nodes: readonly FieldNode[], row: SQL | null): Stepwise<SQL> {
    const source = sourceOf(field);
    if (!source) throw new NotCompiled("field", `${parent.name}.${field.name}`);
    switch (source.kind) {
      case "column":
        return yield* this.value(columnValue(source, row!), source, field.type, nodes);
      case "own value":
        return this.leaf(ownValueSql(row!, source), source, field);
      case "row":
        return this.orNull(yield* this.#rowByKey(source, field, nodes), field.type);
      case "related row":
        return this.orNull(yield* this.#relatedRow(source, field, nodes, row!), field.type);
      case "rows":
        return source.isConnection
          ? yield* this.#connection(source, field, nodes)
          : yield* this.#list(source, field, nodes, row);
      case "call":
        return yield* this.#call(source, field, nodes, row);
      case "mutation":
        return yield* this.#mutation(source, field, nodes);
      case "write":
        return yield* this.#write(source, field, nodes);
      case "rows write":
        return yield* this.#rowsWrite(source, field, nodes);
      case "aggregates part":
        return yield* this.item(field.type, nodes, row!);
      case "aggregate":
        return this.#aggregate(source, field, row!);
      case "node id":
        return nodeIdSql(source, row!);
      case "node":
        return yield* this.#node(source, field, nodes);
      case "event":
        return yield* this.#eventRow(source, field, nodes);
      case "constant":
        return textLiteral(source.text);
      case "withheld":
        if (this.completion) return this.completion.failure(source.error);
    }
    throw new NotCompiled("field", `${parent.name}.${field.name}`);
  }

  *#rowByKey({ table, key }: Source<"row">, field: Field, nodes: readonly FieldNode[]): Stepwise<SQL> {
    const args = this.values.argumentsOf(field, nodes[0]!, isOneOf(key));
    const row = aliasOf(table);
    const conditions = keyConditions(table, key, args, row);
    return sql`(${selectRows(rowOf(table, row, conditions), yield* this.tableItem(table, field.type, nodes, row))})`;
  }

  /** The type is part of the text. Null where the id cannot be read, or has a type that the caller has not. */
  *#node({ argument, nodeOf }: Source<"node">, field: Field, nodes: readonly FieldNode[]): Stepwise<SQL> {
    const args = this.values.argumentsOf(field, nodes[0]!, isOneOf([{ argument }]));
    const value = args.get(argument)!;
    const given = decodeNodeId(this.values.constant(argument, nodes[0]!, value));
    const { schema } = this.selections;
    const node = given && nodeOf(given.typeName);
    const type = node && schema.getType(node.typeName);
    const isShown = isObjectType(type) && schema.isSubType(getNamedType(field.type) as GraphQLInterfaceType, type);
    if (!isShown || given!.key.length < node!.key.length || given!.key.includes(null)) return textLiteral("null");
    const { table } = node!;
    const row = aliasOf(table);
    const conditions = isNode(node!, row, (variables) => decodeNodeId(argumentValue(value, variables))!.key);
    const item = yield* this.object(type, selectionsOf(nodes), row);
    return this.orNull(sql`(${selectRows(rowOf(table, row, conditions), this.ofType(type, item))})`, field.type);
  }

  /** Null if the subscriber may not see the row: the event is then not delivered. */
  *#eventRow({ table }: Source<"event">, field: Field, nodes: readonly FieldNode[]): Stepwise<SQL> {
    const row = aliasOf(table);
    const key = keyOf(table)!;
    // Events carry keys in Postgres's text format.
    const conditions = haveValues(table, key, row, (codec, index) =>
      parameterOf((variables) => eventKeysOf(variables)[key[index]!] ?? null, codec),
    );
    const item = yield* this.tableItem(table, field.type, nodes, row);
    return sql`coalesce((${selectRows(rowOf(table, row, conditions), item)}), 'null')`;
  }

  *#relatedRow({ path }: Source<"related row">, field: Field, nodes: readonly FieldNode[], parent: SQL): Stepwise<SQL> {
    this.values.argumentsOf(field, nodes[0]!, () => false);
    const rows = path.map((relation) => aliasOf(tableOf(relation)));
    let item = yield* this.tableItem(tableOf(path.at(-1)!), field.type, nodes, rows.at(-1)!);
    for (const [index, relation] of [...path.entries()].reverse()) {
      const conditions = joinPairs(relation, rows[index - 1] ?? parent, rows[index]!);
      item = sql`(${selectRows(rowOf(tableOf(relation), rows[index]!, conditions), item)})`;
    }
    return item;
  }

  *#list(source: Source<"rows">, field: Field, nodes: readonly FieldNode[], parent: SQL | null): Stepwise<SQL> {
    const { table, relation, maxPageSize } = source;
    const node = nodes[0]!;
    const args = this.values.argumentsOf(field, node, isListArgument);
    const row = aliasOf(table);
    const conditions = relation ? joinPairs(relation, parent!, row) : [];
    const rows = {
      ...rowsOf(table, row, [...conditions, ...rowConditions(source, field, args, row)]),
      order: orderExpressionsOf(row, table, orderOf(source, field, args, this.values)),
    };
    const range = this.#rangeOf(maxPageSize, node, args);
    if (sql.isSQL(range)) return range;
    const query: RowsSelect = { ...rows, ...range };
    const item = yield* this.#eachOf(query.limit, () => this.tableItem(table, itemTypeOf(field.type), nodes, row));
    if (query.limit === 0 && this.#isSeparate(node)) return textLiteral("[]");
    return jsonArrayOf(query, this.orNull(item, itemTypeOf(field.type)), this.#isBounded);
  }

  /** With completion, a number of rows that is refused is an error of the list. */
  #rangeOf(
    maxPageSize: number,
    node: FieldNode,
    args: ReadonlyMap<string, InputValue>,
  ): Pick<RowsSelect, "limit" | "offset"> | SQL {
    const count = (name: string) => this.values.constant(name, node, args.get(name)) as number | null;
    try {
      return { limit: readLimit(count("limit"), maxPageSize), offset: readOffset(count("offset")) };
    } catch (error) {
      if (!this.completion) throw error;
      return this.completion.failure(error as Error);
    }
  }

  get #isBounded(): boolean {
    return this.#rowsAtMost > MAX_UNBOUNDED_ROWS;
  }

  /** The fields of each row of a list. */
  *#eachOf(limit: number | null, compile: () => Stepwise<SQL>): Stepwise<SQL> {
    const around = this.#rowsAround;
    this.#rowsAround *= limit ?? 1;
    this.#rowsAtMost += this.#rowsAround;
    try {
      return yield* compile();
    } finally {
      this.#rowsAround = around;
    }
  }

  *#connection(source: Source<"rows">, field: Field, nodes: readonly FieldNode[]): Stepwise<SQL> {
    const { table, maxPageSize } = source;
    const node = nodes[0]!;
    const args = this.values.argumentsOf(field, node, isPageArgument);
    const count = (name: string) => this.values.constant(name, node, args.get(name)) as number | null;
    const { first, last } = readPage(count("first"), count("last"), maxPageSize);
    const [after, before] = [args.get("after")!, args.get("before")!];
    const [hasAfter, hasBefore] = [after.kind === "leaf", before.kind === "leaf"];
    const row = aliasOf(table);
    const page: PageQuery = {
      table,
      order: orderOf(source, field, args, this.values),
      isOrderRequested: isOrderRequested(field, args),
      row,
      conditions: rowConditions(source, field, args, row),
      after: hasAfter ? after : null,
      before: hasBefore ? before : null,
      isReverse: last !== null,
      size: (first ?? last)!,
    };
    return yield* this.#eachOf(page.size, () => this.#page(page, objectTypeOf(field.type), selectionsOf(nodes)));
  }

  /**
   * The rows of the page are read once, into arrays of the texts that its parts are made of: an array per `edges`, and one of cursors for
   * `pageInfo`.
   */
  *#page(page: PageQuery, type: GraphQLObjectType, selections: readonly SelectionSetNode[]): Stepwise<SQL> {
    const { table, row, conditions, after, before, isReverse, size } = page;
    const hasCursor = after !== null || before !== null;
    const parts = new PageParts(page);
    const { rows, read } = parts;
    // An empty page reads nothing, but its cursors are checked. One that only counts has no order unless one is requested: it would read columns that the role may perhaps not select.
    const isPageRead =
      hasCursor || (size > 0 && (page.isOrderRequested || !this.selections.hasOnly(type, selections, isCount)));
    let countsRead = false;
    const object = yield* this.objectOf(type, selections, function* (field, nodes) {
      const leftOut = this.completion?.errorOf(nodes[0]!);
      if (leftOut) return leftOut;
      const source = sourceOf(field);
      if (source?.kind === "aggregates") return yield* this.#aggregates(page, source, field, nodes);
      switch (partOf(type, field)) {
        case "edges":
          return parts.items(
            yield* this.#edge(page, parts, objectTypeOf(field.type), selectionsOf(nodes)),
            this.#isBounded,
          );
        case "pageInfo":
          return yield* this.#pageInfo(parts, objectTypeOf(field.type), selectionsOf(nodes));
        case "totalCount": {
          const count = sql`(${selectRows(rowsOf(table, row, conditions), sql`pg_catalog.count(*)::pg_catalog.text`)})`;
          if (hasCursor || !isPageRead) return count;
          countsRead = true;
          // A page that is not full has all rows.
          return sql`case when ${rows}."count" < ${wholeNumber(size)} then ${rows}."count"::pg_catalog.text else ${count} end`;
        }
        default:
          throw new NotCompiled("field", `${type.name}.${field.name}`);
      }
    });
    const order = orderExpressionsOf(row, table, page.order);
    if (!isPageRead) return object;
    // If no part of the page is selected, this still checks its arguments and privileges.
    if (parts.columns.length === 0) parts.column(textLiteral(""));
    if (parts.arrays.length === 0) parts.arrayOf(textLiteral(""));
    const query: RowsSelect = {
      row,
      from: table.from as SQL,
      conditions: [
        ...conditions,
        ...(after ? [beyondCursor(table, page.order, row, after, "after")] : []),
        ...(before ? [beyondCursor(table, page.order, row, before, "before")] : []),
      ],
      order: isReverse ? order.map(reversed) : order,
      limit: parts.looksAhead ? size + 1 : size,
      offset: 0,
    };
    const columns = parts.columns.map((value, index) => sql`${value} as ${sql.identifier(`text${index + 1}`)}`);
    const arrays = parts.arrays.map(
      (text, index) =>
        sql`coalesce(pg_catalog.array_agg(${text}::pg_catalog.text), '{}') as ${sql.identifier(`texts${index + 1}`)}`,
    );
    if (countsRead) arrays.push(sql`pg_catalog.count(*) as "count"`);
    const selected = selectRows(query, sql.join(columns, ", "));
    return sql`(select ${object} from (select ${sql.join(arrays, ", ")} from (${selected}) as ${read}) as ${rows})`;
  }

  /** The aggregates of all rows, grouped by the columns that are selected as groups. */
  *#aggregates(
    { table, row, conditions }: PageQuery,
    { maxPageSize }: Source<"aggregates">,
    field: Field,
    nodes: readonly FieldNode[],
  ): Stepwise<SQL> {
    const groups = this.#groups;
    this.#groups = [];
    try {
      const item = yield* this.item(itemTypeOf(field.type), nodes, row);
      return jsonArrayOf({ ...rowsOf(table, row, conditions), groups: this.#groups, limit: maxPageSize }, item);
    } finally {
      this.#groups = groups;
    }
  }

  #aggregate({ value, isGroup, codec }: Source<"aggregate">, field: Field, row: SQL): SQL {
    const aggregate = value(row);
    if (isGroup) this.#groups.push(aggregate);
    return this.leaf(aggregate, { codec }, field);
  }

  /** The edge of each row, made of columns of the page. */
  *#edge(
    { table, row }: PageQuery,
    parts: PageParts,
    type: GraphQLObjectType,
    selections: readonly SelectionSetNode[],
  ): Stepwise<SQL> {
    return yield* this.objectOf(type, selections, function* (field, nodes) {
      const source = sourceOf(field);
      if (source?.kind === "search result") {
        const value = searchResultSql(source, field, nodes[0]!, this.values, row);
        return parts.column(this.leaf(value, source, field));
      }
      switch (partOf(type, field)) {
        case "node":
          return parts.column(this.orNull(yield* this.tableItem(table, field.type, nodes, row), field.type));
        case "cursor":
          return parts.cursor();
        default:
          throw new NotCompiled("field", `${type.name}.${field.name}`);
      }
    });
  }

  #pageInfo(parts: PageParts, type: GraphQLObjectType, selections: readonly SelectionSetNode[]): Stepwise<SQL> {
    return this.objectOf(type, selections, (field) => {
      const value = parts.info(partOf(type, field));
      if (value === null) throw new NotCompiled("field", `${type.name}.${field.name}`);
      return value;
    });
  }

  *#call(source: Source<"call">, field: Field, nodes: readonly FieldNode[], parent: SQL | null): Stepwise<SQL> {
    const { resource, maxPageSize, args, ofRow } = source;
    const given = this.values.argumentsOf(field, nodes[0]!, isOneOf(args));
    const called = callSql(resource, args, given, ofRow ? parent : null);
    if (!resource.codec.attributes && resource.isUnique)
      return yield* this.valueOfCall(called, resource, field.type, nodes);
    return yield* this.#result(resource, called, maxPageSize, field, nodes);
  }

  /** A statement before this one calls the function; this one sees its changes. */
  *#mutation(
    { resource, args, countsSignUp }: Source<"mutation">,
    field: Field,
    nodes: readonly FieldNode[],
  ): Stepwise<SQL> {
    const isKnown = isOneOf([...args, { argument: "input" }]);
    const given = this.values.argumentsOf(field, nodes[0]!, isKnown);
    const input = given.get("input");
    const values = new Map(given);
    if (input?.kind === "object") for (const [name, value] of input.fields) if (name !== "id") values.set(name, value);
    const called = callSql(resource, args, values, null);
    this.countsSignUp = countsSignUp;
    this.callsFunction = true;
    if (!fitsInSetting(resource)) return yield* this.#resultOfMutation(resource, called, field, nodes);
    this.call = keepResult(called);
    this.failureText = failureTextOf(resource);
    return yield* this.#resultOfMutation(resource, resultRows(resource), field, nodes);
  }

  /** `from`: the call, or its result that was kept. */
  *#resultOfMutation(resource: SchemaResource, from: SQL, field: Field, nodes: readonly FieldNode[]): Stepwise<SQL> {
    const row = sql.identifier(Symbol(resource.name));
    if (resource.codec === TYPES.void) return sql`(select 'true' from ${from} as ${row})`;
    if (resource.codec.attributes || !resource.isUnique) return yield* this.#result(resource, from, null, field, nodes);
    const text = yield* this.value(sql`${row}.v`, { codec: resource.codec, table: null }, field.type, nodes);
    return this.orNull(sql`(select ${text} from ${from} as ${row}(v))`, field.type);
  }

  *#write(source: Source<"write">, field: Field, nodes: readonly FieldNode[]): Stepwise<SQL> {
    const values = this.values.argumentsOf(field, nodes[0]!, isOneOf([...source.key, { argument: "input" }]));
    const { write, value } = yield* compileRowWrite({
      source,
      field,
      values,
      schema: this.selections.schema,
      selected: () => {
        const type = objectTypeOf(field.type);
        const fields = [...this.selections.fieldsOf(type, selectionsOf(nodes)).values()];
        return { type, fields };
      },
      item: (row) => this.item(field.type, nodes, row),
      isAlone: this.completion !== null,
    });
    this.write = write;
    this.countsSignUp = source.countsSignUp;
    return value;
  }

  *#rowsWrite(source: Source<"rows write">, field: Field, nodes: readonly FieldNode[]): Stepwise<SQL> {
    const values = this.values.argumentsOf(field, nodes[0]!, ({ name }) => source.args.includes(name));
    const item = (row: SQL) => this.tableItem(source.table, itemTypeOf(field.type), nodes, row);
    const { write, value } = yield* compileRowsWrite({ source, field, values, schema: this.selections.schema, item });
    this.write = write;
    return value;
  }

  /** The result of a function: a row, rows or a list of values. */
  *#result(
    resource: SchemaResource,
    from: SQL,
    limit: number | null,
    field: Field,
    nodes: readonly FieldNode[],
  ): Stepwise<SQL> {
    const row = sql.identifier(Symbol(resource.name));
    const isRow = Boolean(resource.codec.attributes);
    const alias = isRow ? row : sql`${row}(v)`;
    const query = { row: alias, from, conditions: [], order: [], limit: resource.isUnique ? null : limit, offset: 0 };
    if (resource.isUnique) {
      // A field that is not null has the row even if all its columns are null, unless one of them cannot be null.
      const isPresent = isNonNullType(field.type) && (!isRow || mayBeNullRow(resource as PgTable));
      const present = isPresent ? query : { ...query, conditions: [presence(resource, row)] };
      const item = isRow ? this.rowItem(resource, field.type, nodes, row) : this.item(field.type, nodes, row);
      return this.orNull(sql`(${selectRows(present, yield* item)})`, field.type);
    }
    const type = itemTypeOf(field.type);
    if (!isRow) {
      const value = { codec: resource.codec, table: null };
      return jsonArrayOf(query, yield* this.value(sql`${row}.v`, value, type, nodes));
    }
    const fields = yield* this.#eachOf(limit, () => this.rowItem(resource, type, nodes, row));
    const item = sql`case when ${presence(resource, row)} then ${fields} end`;
    return jsonArrayOf(query, this.orNull(item, type), this.#isBounded);
  }
}

type IsSeparate = (source: FieldSource) => boolean;

/** True for a field of other rows, and for a function of the row that returns any: the statement that reads rows calls the functions of values. */
function isOfOtherRows(source: FieldSource): boolean {
  const isValueCall = source.kind === "call" && source.resource.isUnique && !source.resource.codec.attributes;
  return readsOtherRows(source) && !isValueCall;
}

/** True for a field of a connection that is about more rows than those of the page. */
function isOfAllRows(source: FieldSource): boolean {
  return source.kind === "aggregates" || (source.kind === "page" && source.part === "totalCount");
}

function columnValue({ column, via }: Source<"column">, row: SQL): SQL {
  const name = sql.identifier(column);
  if (!via) return sql`${row}.${name}`;
  const other = aliasOf(tableOf(via));
  return sql`(${selectRows(rowOf(tableOf(via), other, joinPairs(via, row, other)), sql`${other}.${name}`)})`;
}
