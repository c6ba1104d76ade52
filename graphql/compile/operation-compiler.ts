import { type SQL, sql } from "@dataplan/pg/pg-sql2";
import {
  type FieldNode,
  type GraphQLObjectType,
  type GraphQLOutputType,
  GraphQLString,
  type SelectionSetNode,
} from "grafast/graphql";
import {
  type FieldSource,
  failureTextOf,
  joinPairs,
  keepResult,
  type ObjectValue,
  objectValueOf,
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
  arrayOfItems,
  beyondCursor,
  callSql,
  concatenate,
  jsonArrayOf,
  keyConditions,
  mayBeNullRow,
  PageParts,
  type PageQuery,
  presence,
  type RowsSelect,
  reversed,
  rowsOf,
  selectRows,
  tableOf,
  wholeNumber,
} from "./collection-sql.ts";
import { NotCompiled } from "./not-compiled.ts";
import type { OperationValues } from "./operation-values.ts";
import {
  isListArgument,
  isOneOf,
  isOrderRequested,
  isPageArgument,
  orderOf,
  rowConditions,
  searchResultSql,
} from "./row-arguments.ts";
import { compileRowsWrite, compileRowWrite, type RowWrite } from "./row-write.ts";
import {
  type Field,
  isCount,
  isTypename,
  itemTypeOf,
  objectTypeOf,
  partOf,
  type RootField,
  type SelectedField,
  type SelectionReader,
  selectionsOf,
} from "./selection-reader.ts";
import { orNull, REFUSE, spellValue, textLiteral } from "./spell-value.ts";

/** One statement would build larger responses in the memory of Postgres; Grafast reads level by level, and ends when one is too large. */
const MAX_ROWS = 10_000_000;

type Source<Kind extends FieldSource["kind"]> = Extract<FieldSource, { readonly kind: Kind }>;

/** Returns the text of a field's value, in steps if the field has fields of its own. */
type SpellField = (this: OperationCompiler, field: Field, nodes: readonly FieldNode[]) => SQL | Stepwise<SQL>;

/** Writes the SQL of an operation, in steps since large operations take tens of milliseconds. Throws NotCompiled for a field that it does not know. */
export class OperationCompiler {
  readonly #selections: SelectionReader;
  readonly #values: OperationValues;
  holdsJson = false;
  /** The statement that calls a mutation's function. */
  call: SQL | null = null;
  /** The statement that returns a row if the result of that call says that it was not successful. */
  failureText: string | null = null;
  /** The row that a generated mutation writes. */
  write: RowWrite | null = null;
  /** The limits of the lists around a field, multiplied. */
  #rowsAround = 1;
  /** The highest number of rows that the limits of all lists allow. */
  #rowsAtMost = 0;
  /** The columns by which the rows of aggregates are grouped. */
  #groups: SQL[] = [];

  constructor(selections: SelectionReader, values: OperationValues) {
    this.#selections = selections;
    this.#values = values;
  }

  root(type: GraphQLObjectType, selected: readonly SelectedField[], fields: RootField[]): Stepwise<SQL> {
    for (const [key, nodes] of selected) {
      const field = type.getFields()[nodes[0]!.name.value];
      if (field) fields.push({ key, nodes, type: field.type });
      else fields.push({ key, nodes, type: GraphQLString, constant: type.name });
    }
    return this.#objectOfFields(type, selected, (field, nodes) => this.#field(type, field, nodes, null));
  }

  /** A JSON object with the selected fields, as text; never null. */
  #object(type: GraphQLObjectType, selections: readonly SelectionSetNode[], row: SQL): Stepwise<SQL> {
    return this.#objectOf(type, selections, (field, nodes) => this.#field(type, field, nodes, row));
  }

  #objectOf(type: GraphQLObjectType, selections: readonly SelectionSetNode[], spell: SpellField): Stepwise<SQL> {
    return this.#objectOfFields(type, [...this.#selections.fieldsOf(type, selections)], spell);
  }

  *#objectOfFields(type: GraphQLObjectType, fields: readonly SelectedField[], spell: SpellField): Stepwise<SQL> {
    const pieces: SQL[] = [];
    for (const [key, nodes] of fields) {
      yield;
      const name = nodes[0]!.name.value;
      const opening = `${pieces.length === 0 ? "{" : ","}"${key}":`;
      if (isTypename(nodes)) {
        pieces.push(textLiteral(`${opening}"${type.name}"`));
        continue;
      }
      if (name.startsWith("__")) throw new NotCompiled("introspection", name);
      const spelled = spell.call(this, type.getFields()[name]!, nodes);
      pieces.push(textLiteral(opening), sql.isSQL(spelled) ? spelled : yield* spelled);
    }
    if (pieces.length === 0) return textLiteral("{}");
    return concatenate([...pieces, textLiteral("}")]);
  }

  *#field(parent: GraphQLObjectType, field: Field, nodes: readonly FieldNode[], row: SQL | null): Stepwise<SQL> {
    const source = sourceOf(field);
    if (!source) throw new NotCompiled("field", `${parent.name}.${field.name}`);
    switch (source.kind) {
      case "column":
        return yield* this.#column(sql`${row!}.${sql.identifier(source.column)}`, source, field, nodes);
      case "own value":
        return this.#leaf(ownValueSql(row!, source), source, field);
      case "row":
        return orNull(yield* this.#rowByKey(source, field, nodes), field.type);
      case "related row":
        return orNull(yield* this.#relatedRow(source, field, nodes, row!), field.type);
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
        return yield* this.#item(field.type, nodes, row!);
      case "aggregate":
        return this.#aggregate(source, field, row!);
      case "member":
      case "search result":
      case "aggregates":
      case "page":
        throw new NotCompiled("field", `${parent.name}.${field.name}`);
    }
  }

  /** A scalar, a row of a table, a composite value, or a list of these values. */
  *#column(value: SQL, { codec, table }: Source<"column">, field: Field, nodes: readonly FieldNode[]): Stepwise<SQL> {
    if (table) {
      const row = sql.identifier(Symbol(table.name));
      const item = yield* this.#item(field.type, nodes, row);
      return orNull(
        sql`(select ${item} from pg_catalog.unnest(array[${value}]) as ${row} where ${presence(table, row)})`,
        field.type,
      );
    }
    if (codec.attributes) return orNull(yield* this.#composite(value, field.type, nodes), field.type);
    const object = objectValueOf(value, codec);
    if (object) return yield* this.#objectValue(object, field.type, nodes);
    const items = sql.identifier(Symbol("items"));
    const itemValue = sql`${items}."item"`;
    const itemObject = codec.arrayOfCodec && objectValueOf(itemValue, codec.arrayOfCodec);
    if (!itemObject && codec.arrayOfCodec?.extensions?.isTableLike !== false)
      return this.#leaf(value, { codec }, field);
    const type = itemTypeOf(field.type);
    const item = itemObject
      ? yield* this.#objectValue(itemObject, type, nodes)
      : orNull(yield* this.#composite(itemValue, type, nodes), type);
    const list = sql`(select ${arrayOfItems(sql`pg_catalog.string_agg(${item}, ',')`)} from (select pg_catalog.unnest(${value}) as "item") as ${items})`;
    return orNull(
      sql`case when pg_catalog.array_ndims(${value}) operator(pg_catalog.>) 1 then ${REFUSE} when ${value} is not null then ${list} end`,
      field.type,
    );
  }

  *#objectValue({ isNull, members }: ObjectValue, type: GraphQLOutputType, nodes: readonly FieldNode[]): Stepwise<SQL> {
    const ofType = objectTypeOf(type);
    const text = yield* this.#objectOf(ofType, selectionsOf(nodes), function* (field, own) {
      const source = sourceOf(field);
      const member = source?.kind === "member" ? members[source.member] : undefined;
      switch (member?.kind) {
        case "leaf":
          return this.#leaf(member.value, member, field);
        case "object":
          return yield* this.#objectValue(member.object, field.type, own);
        case "objects": {
          const item = yield* this.#objectValue(member.item, itemTypeOf(field.type), own);
          const list = sql`pg_catalog.string_agg(${item}, ',' order by ${member.position})`;
          return sql`(select ${arrayOfItems(list)} from ${member.from})`;
        }
        default:
          throw new NotCompiled("field", `${ofType.name}.${field.name}`);
      }
    });
    return isNull ? orNull(sql`case when not (${isNull}) then ${text} end`, type) : text;
  }

  *#composite(value: SQL, type: GraphQLOutputType, nodes: readonly FieldNode[]): Stepwise<SQL> {
    return sql`case when ${value} is distinct from null then ${yield* this.#item(type, nodes, sql`(${value})`)} end`;
  }

  #leaf(value: SQL, { codec }: Pick<Source<"column">, "codec">, { type }: Pick<Field, "type">): SQL {
    const { text, holdsJson } = spellValue(value, codec, type);
    if (holdsJson) this.holdsJson = true;
    return orNull(text, type);
  }

  /** The selected fields of a row that the field returns. */
  #item(type: GraphQLOutputType, nodes: readonly FieldNode[], row: SQL): Stepwise<SQL> {
    return this.#object(objectTypeOf(type), selectionsOf(nodes), row);
  }

  /** Null where the row is null. */
  *#tableItem(table: PgTable, type: GraphQLOutputType, nodes: readonly FieldNode[], row: SQL): Stepwise<SQL> {
    const item = yield* this.#item(type, nodes, row);
    return mayBeNullRow(table) ? sql`case when ${presence(table, row)} then ${item} end` : item;
  }

  *#rowByKey({ table, key }: Source<"row">, field: Field, nodes: readonly FieldNode[]): Stepwise<SQL> {
    const args = this.#values.argumentsOf(field, nodes[0]!, isOneOf(key));
    const row = aliasOf(table);
    const conditions = keyConditions(table, key, args, row);
    return sql`(${selectRows(rowsOf(table, row, conditions), yield* this.#tableItem(table, field.type, nodes, row))})`;
  }

  *#relatedRow({ path }: Source<"related row">, field: Field, nodes: readonly FieldNode[], parent: SQL): Stepwise<SQL> {
    this.#values.argumentsOf(field, nodes[0]!, () => false);
    const rows = path.map((relation) => aliasOf(tableOf(relation)));
    let item = yield* this.#tableItem(tableOf(path.at(-1)!), field.type, nodes, rows.at(-1)!);
    for (const [index, relation] of [...path.entries()].reverse()) {
      const conditions = joinPairs(relation, rows[index - 1] ?? parent, rows[index]!);
      item = sql`(${selectRows(rowsOf(tableOf(relation), rows[index]!, conditions), item)})`;
    }
    return item;
  }

  *#list(source: Source<"rows">, field: Field, nodes: readonly FieldNode[], parent: SQL | null): Stepwise<SQL> {
    const { table, relation, maxPageSize } = source;
    const node = nodes[0]!;
    const args = this.#values.argumentsOf(field, node, isListArgument);
    const count = (name: string) => this.#values.constant(name, node, args.get(name)) as number | null;
    const row = aliasOf(table);
    const conditions = relation ? joinPairs(relation, parent!, row) : [];
    const query: RowsSelect = {
      ...rowsOf(table, row, [...conditions, ...rowConditions(source, field, args, row)]),
      order: orderExpressionsOf(row, table, orderOf(source, field, args, this.#values)),
      limit: readLimit(count("limit"), maxPageSize),
      offset: readOffset(count("offset")),
    };
    const item = yield* this.#eachOf(query.limit, () => this.#tableItem(table, itemTypeOf(field.type), nodes, row));
    return jsonArrayOf(query, orNull(item, itemTypeOf(field.type)));
  }

  /** The fields of each row of a list. */
  *#eachOf(limit: number | null, compile: () => Stepwise<SQL>): Stepwise<SQL> {
    const around = this.#rowsAround;
    this.#rowsAround *= limit ?? 1;
    this.#rowsAtMost += this.#rowsAround;
    if (this.#rowsAtMost > MAX_ROWS) throw new NotCompiled("size", `Its limits allow more than ${MAX_ROWS} rows.`);
    const fields = yield* compile();
    this.#rowsAround = around;
    return fields;
  }

  *#connection(source: Source<"rows">, field: Field, nodes: readonly FieldNode[]): Stepwise<SQL> {
    const { table, maxPageSize } = source;
    const node = nodes[0]!;
    const args = this.#values.argumentsOf(field, node, isPageArgument);
    const count = (name: string) => this.#values.constant(name, node, args.get(name)) as number | null;
    const { first, last } = readPage(count("first"), count("last"), maxPageSize);
    const [after, before] = [args.get("after")!, args.get("before")!];
    const [hasAfter, hasBefore] = [after.kind === "leaf", before.kind === "leaf"];
    if ((first !== null && hasBefore) || (last !== null && hasAfter)) throw new NotCompiled("argument", "cursor");

    const row = aliasOf(table);
    const page: PageQuery = {
      table,
      order: orderOf(source, field, args, this.#values),
      isOrderRequested: isOrderRequested(field, args),
      row,
      conditions: rowConditions(source, field, args, row),
      cursor: hasAfter ? after : hasBefore ? before : null,
      isReverse: last !== null,
      size: (first ?? last)!,
      hasAfter,
      hasBefore,
    };
    return yield* this.#eachOf(page.size, () => this.#page(page, objectTypeOf(field.type), selectionsOf(nodes)));
  }

  /**
   * The rows of the page are read once, into arrays of the texts that its parts are made of: an array per `edges`, and one of cursors for
   * `pageInfo`.
   */
  *#page(page: PageQuery, type: GraphQLObjectType, selections: readonly SelectionSetNode[]): Stepwise<SQL> {
    const { table, row, conditions, cursor, isReverse, size } = page;
    const parts = new PageParts(page);
    const { rows, read } = parts;
    // A page that only counts has no order unless one is requested: it would read columns that the role may perhaps not select.
    const isPageRead = cursor !== null || page.isOrderRequested || !this.#selections.hasOnly(type, selections, isCount);
    let countsRead = false;
    const object = yield* this.#objectOf(type, selections, function* (field, nodes) {
      const source = sourceOf(field);
      if (source?.kind === "aggregates") return yield* this.#aggregates(page, source, field, nodes);
      switch (partOf(type, field)) {
        case "edges":
          return parts.items(yield* this.#edge(page, parts, objectTypeOf(field.type), selectionsOf(nodes)));
        case "pageInfo":
          return yield* this.#pageInfo(parts, objectTypeOf(field.type), selectionsOf(nodes));
        case "totalCount": {
          const count = sql`(${selectRows(rowsOf(table, row, conditions), sql`pg_catalog.count(*)::pg_catalog.text`)})`;
          if (cursor || size === 0 || !isPageRead) return count;
          countsRead = true;
          // A page that is not full has all rows.
          return sql`case when ${rows}."count" < ${wholeNumber(size)} then ${rows}."count"::pg_catalog.text else ${count} end`;
        }
        default:
          throw new NotCompiled("field", `${type.name}.${field.name}`);
      }
    });
    if (!isPageRead) return object;
    // If no part of the page is selected, this still checks its arguments and privileges.
    if (parts.columns.length === 0) parts.column(textLiteral(""));
    if (parts.arrays.length === 0) parts.arrayOf(textLiteral(""));
    const order = orderExpressionsOf(row, table, page.order);
    const query: RowsSelect = {
      row,
      from: table.from as SQL,
      conditions: [...conditions, ...(cursor ? [beyondCursor(table, page.order, row, cursor, isReverse)] : [])],
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
    const item = yield* this.#item(itemTypeOf(field.type), nodes, row);
    const query = { ...rowsOf(table, row, conditions), groups: this.#groups, limit: maxPageSize };
    this.#groups = groups;
    return jsonArrayOf(query, item);
  }

  #aggregate({ value, isGroup, codec }: Source<"aggregate">, field: Field, row: SQL): SQL {
    const aggregate = value(row);
    if (isGroup) this.#groups.push(aggregate);
    return this.#leaf(aggregate, { codec }, field);
  }

  /** The edge of each row, made of columns of the page. */
  *#edge(
    { table, row }: PageQuery,
    parts: PageParts,
    type: GraphQLObjectType,
    selections: readonly SelectionSetNode[],
  ): Stepwise<SQL> {
    return yield* this.#objectOf(type, selections, function* (field, nodes) {
      const source = sourceOf(field);
      if (source?.kind === "search result") {
        const value = searchResultSql(source, field, nodes[0]!, this.#values, row);
        return parts.column(this.#leaf(value, source, field));
      }
      switch (partOf(type, field)) {
        case "node":
          return parts.column(orNull(yield* this.#tableItem(table, field.type, nodes, row), field.type));
        case "cursor":
          return parts.cursor();
        default:
          throw new NotCompiled("field", `${type.name}.${field.name}`);
      }
    });
  }

  #pageInfo(parts: PageParts, type: GraphQLObjectType, selections: readonly SelectionSetNode[]): Stepwise<SQL> {
    return this.#objectOf(type, selections, (field) => {
      const value = parts.info(partOf(type, field));
      if (value === null) throw new NotCompiled("field", `${type.name}.${field.name}`);
      return value;
    });
  }

  *#call(source: Source<"call">, field: Field, nodes: readonly FieldNode[], parent: SQL | null): Stepwise<SQL> {
    const { resource, maxPageSize, args, ofRow } = source;
    const given = this.#values.argumentsOf(field, nodes[0]!, isOneOf(args));
    const called = callSql(resource, args, given, ofRow ? parent : null);
    if (!resource.codec.attributes && resource.isUnique) return this.#leaf(called, resource, field);
    return yield* this.#result(resource, called, maxPageSize, field, nodes);
  }

  /** A statement before this one calls the function; this one sees its changes. */
  *#mutation({ resource, args }: Source<"mutation">, field: Field, nodes: readonly FieldNode[]): Stepwise<SQL> {
    const isKnown = isOneOf([...args, { argument: "input" }]);
    const given = this.#values.argumentsOf(field, nodes[0]!, isKnown);
    const input = given.get("input");
    const values = new Map(given);
    if (input?.kind === "object") for (const [name, value] of input.fields) if (name !== "id") values.set(name, value);
    this.call = keepResult(callSql(resource, args, values, null));
    this.failureText = failureTextOf(resource);
    const row = sql.identifier(Symbol(resource.name));
    const rows = resultRows(resource);
    if (resource.codec.attributes || !resource.isUnique) return yield* this.#result(resource, rows, null, field, nodes);
    const text = this.#leaf(sql`${row}.v`, resource, field);
    return orNull(sql`(select ${text} from ${rows} as ${row}(v))`, field.type);
  }

  *#write(source: Source<"write">, field: Field, nodes: readonly FieldNode[]): Stepwise<SQL> {
    const values = this.#values.argumentsOf(field, nodes[0]!, isOneOf([...source.key, { argument: "input" }]));
    const { write, value } = yield* compileRowWrite({
      source,
      field,
      values,
      schema: this.#selections.schema,
      selected: () => {
        const type = objectTypeOf(field.type);
        return { type, fields: this.#selections.fieldsOf(type, selectionsOf(nodes)).values() };
      },
      item: (row) => this.#item(field.type, nodes, row),
    });
    this.write = write;
    return value;
  }

  *#rowsWrite(source: Source<"rows write">, field: Field, nodes: readonly FieldNode[]): Stepwise<SQL> {
    const values = this.#values.argumentsOf(field, nodes[0]!, ({ name }) => source.args.includes(name));
    const item = (row: SQL) => this.#tableItem(source.table, itemTypeOf(field.type), nodes, row);
    const { write, value } = yield* compileRowsWrite({ source, field, values, schema: this.#selections.schema, item });
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
      const present = { ...query, conditions: [presence(resource, row)] };
      return orNull(sql`(${selectRows(present, yield* this.#item(field.type, nodes, row))})`, field.type);
    }
    const type = itemTypeOf(field.type);
    if (!isRow) return jsonArrayOf(query, this.#leaf(sql`${row}.v`, resource, { type }));
    const fields = yield* this.#eachOf(limit, () => this.#item(type, nodes, row));
    const item = sql`case when ${presence(resource, row)} then ${fields} end`;
    return jsonArrayOf(query, orNull(item, type));
  }
}
