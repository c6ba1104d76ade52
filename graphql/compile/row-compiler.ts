import { type SQL, sql } from "@dataplan/pg/pg-sql2";
import {
  type FieldNode,
  GraphQLError,
  type GraphQLInterfaceType,
  type GraphQLObjectType,
  type GraphQLOutputType,
  getNamedType,
  isInterfaceType,
  isLeafType,
  isObjectType,
  type SelectionSetNode,
} from "grafast/graphql";
import {
  type Codec,
  joinPairs,
  type ObjectValue,
  objectValueOf,
  type PgTable,
  rowTypesOf,
  type SchemaResource,
} from "#plugins";
import type { Stepwise } from "#runtime/concurrency";
import {
  aliasOf,
  arrayOfItems,
  concatenate,
  mayBeNullRow,
  presence,
  rowOf,
  selectRows,
  tableOf,
} from "./collection-sql.ts";
import { NotCompiled } from "./not-compiled.ts";
import type { OperationValues } from "./operation-values.ts";
import {
  type Field,
  isTypename,
  itemTypeOf,
  objectTypeOf,
  type SelectedField,
  type SelectionReader,
  selectionsOf,
} from "./selection-reader.ts";
import { orNull, REFUSE, spellValue, textLiteral } from "./spell-value.ts";
import { OBJECT, TYPE, type ValueCompletion } from "./value-completion.ts";

/** Returns the text of a field's value, in steps if the field has fields of its own. */
type SpellField<Compiler> = (this: Compiler, field: Field, nodes: readonly FieldNode[]) => SQL | Stepwise<SQL>;

/** Writes the SQL of the fields of a row, of an object, and of a value. */
export abstract class RowCompiler {
  protected readonly selections: SelectionReader;
  protected readonly values: OperationValues;
  /** Null: Postgres writes the values as they are in the response. */
  protected readonly completion: ValueCompletion | null;
  holdsJson = false;

  constructor(selections: SelectionReader, values: OperationValues, completion: ValueCompletion | null) {
    this.selections = selections;
    this.values = values;
    this.completion = completion;
  }

  /** The text of the value of a row's field. */
  protected abstract field(
    parent: GraphQLObjectType,
    field: Field,
    nodes: readonly FieldNode[],
    row: SQL | null,
  ): Stepwise<SQL>;

  /** A JSON object with the selected fields, as text; never null. */
  protected object(type: GraphQLObjectType, selections: readonly SelectionSetNode[], row: SQL): Stepwise<SQL> {
    return this.objectOf(type, selections, (field, nodes) => this.field(type, field, nodes, row));
  }

  protected objectOf(
    type: GraphQLObjectType,
    selections: readonly SelectionSetNode[],
    spell: SpellField<this>,
  ): Stepwise<SQL> {
    return this.objectOfFields(type, [...this.selections.fieldsOf(type, selections)], spell);
  }

  protected *objectOfFields(
    type: GraphQLObjectType,
    fields: readonly SelectedField[],
    spell: SpellField<this>,
  ): Stepwise<SQL> {
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

  /** A scalar, a row of a table, a composite value, or a list of these values. */
  protected *value(
    value: SQL,
    { codec, table }: { readonly codec: Codec; readonly table: SchemaResource | null },
    type: GraphQLOutputType,
    nodes: readonly FieldNode[],
  ): Stepwise<SQL> {
    if (table) {
      const row = sql.identifier(Symbol(table.name));
      const item = yield* this.rowItem(table, type, nodes, row);
      return this.orNull(
        sql`(select ${item} from pg_catalog.unnest(array[${value}]) as ${row} where ${presence(table, row)})`,
        type,
      );
    }
    if (codec.attributes) return this.orNull(yield* this.composite(value, type, nodes), type);
    const object = objectValueOf(value, codec);
    if (object) return yield* this.objectValue(object, type, nodes);
    const items = sql.identifier(Symbol("items"));
    const itemValue = sql`${items}."item"`;
    const itemObject = codec.arrayOfCodec && objectValueOf(itemValue, codec.arrayOfCodec);
    if (!itemObject && !codec.arrayOfCodec?.attributes) return this.leaf(value, { codec }, { type });
    const itemType = itemTypeOf(type);
    const item = itemObject
      ? yield* this.objectValue(itemObject, itemType, nodes)
      : this.orNull(yield* this.composite(itemValue, itemType, nodes), itemType);
    const list = sql`(select ${arrayOfItems(sql`pg_catalog.string_agg(${item}, ',')`)} from (select pg_catalog.unnest(${value}) as "item") as ${items})`;
    return this.orNull(
      sql`case when pg_catalog.array_ndims(${value}) operator(pg_catalog.>) 1 then ${this.refusal()} when ${value} is not null then ${list} end`,
      type,
    );
  }

  /** A value that is written several times, such as the members of a range, is evaluated once. */
  protected *valueOfCall(
    called: SQL,
    resource: SchemaResource,
    type: GraphQLOutputType,
    nodes: readonly FieldNode[],
  ): Stepwise<SQL> {
    const own = { codec: resource.codec, table: null };
    if (isLeafType(getNamedType(type))) return yield* this.value(called, own, type, nodes);
    const row = sql.identifier(Symbol(resource.name));
    const text = yield* this.value(sql`${row}.v`, own, type, nodes);
    return this.orNull(sql`(select ${text} from (select ${called} as v) as ${row})`, type);
  }

  protected *objectValue(
    { isNull, members }: ObjectValue,
    type: GraphQLOutputType,
    nodes: readonly FieldNode[],
  ): Stepwise<SQL> {
    const ofType = objectTypeOf(type);
    const text = yield* this.objectOf(ofType, selectionsOf(nodes), function* (field, own) {
      const member = members[field.name];
      switch (member?.kind) {
        case "leaf":
          return this.leaf(member.value, member, field);
        case "object":
          return yield* this.objectValue(member.object, field.type, own);
        case "objects": {
          const item = yield* this.objectValue(member.item, itemTypeOf(field.type), own);
          const list = sql`pg_catalog.string_agg(${item}, ',' order by ${member.position})`;
          return sql`(select ${arrayOfItems(list)} from ${member.from})`;
        }
        default:
          throw new NotCompiled("field", `${ofType.name}.${field.name}`);
      }
    });
    return isNull ? this.orNull(sql`case when not (${isNull}) then ${text} end`, type) : text;
  }

  protected *composite(value: SQL, type: GraphQLOutputType, nodes: readonly FieldNode[]): Stepwise<SQL> {
    return sql`case when ${value} is distinct from null then ${yield* this.item(type, nodes, sql`(${value})`)} end`;
  }

  protected leaf(value: SQL, { codec }: { readonly codec: Codec }, { type }: Pick<Field, "type">): SQL {
    if (this.completion) return this.completion.leaf(value, codec);
    const { text, holdsJson } = spellValue(value, codec, type);
    if (holdsJson) this.holdsJson = true;
    return this.orNull(text, type);
  }

  /** The text of an object, for a field that may have objects of several types. */
  protected ofType(type: GraphQLObjectType, object: SQL): SQL {
    return this.completion
      ? concatenate([textLiteral(`{"${TYPE}":"${type.name}","${OBJECT}":`), object, textLiteral("}")])
      : object;
  }

  protected orNull(text: SQL, type: GraphQLOutputType): SQL {
    return this.completion ? sql`coalesce(${text}, 'null')` : orNull(text, type);
  }

  /** A list of lists has no type in GraphQL. */
  protected refusal(): SQL {
    return this.completion?.failure(new GraphQLError("The value is a list of lists.")) ?? REFUSE;
  }

  /** The selected fields of a row that the field returns. */
  protected item(type: GraphQLOutputType, nodes: readonly FieldNode[], row: SQL): Stepwise<SQL> {
    return this.object(objectTypeOf(type), selectionsOf(nodes), row);
  }

  /** The selected fields of a row of a table. Null for a row of an interface whose type is none. */
  protected rowItem(
    table: SchemaResource,
    type: GraphQLOutputType,
    nodes: readonly FieldNode[],
    row: SQL,
  ): Stepwise<SQL> {
    const named = getNamedType(type);
    return isInterfaceType(named) ? this.#itemOfInterface(table, named, nodes, row) : this.item(type, nodes, row);
  }

  *#itemOfInterface(
    table: SchemaResource,
    type: GraphQLInterfaceType,
    nodes: readonly FieldNode[],
    row: SQL,
  ): Stepwise<SQL> {
    const { schema } = this.selections;
    const cases: SQL[] = [];
    const rowTypes = rowTypesOf(table);
    if (!rowTypes) throw new NotCompiled("type", type.name);
    const { column, types } = rowTypes;
    for (const { value, typeName, relation } of types) {
      const own = schema.getType(typeName);
      if (!isObjectType(own) || !schema.isSubType(type, own)) continue;
      const other = relation ? aliasOf(tableOf(relation)) : row;
      const object = this.ofType(own, yield* this.object(own, selectionsOf(nodes), other));
      const read = relation
        ? sql`(${selectRows(rowOf(tableOf(relation), other, joinPairs(relation, row, other)), object)})`
        : object;
      cases.push(sql`when ${textLiteral(value)} then ${read}`);
    }
    if (cases.length === 0) return sql`null::pg_catalog.text`;
    return sql`case ${row}.${sql.identifier(column)}::pg_catalog.text ${sql.join(cases, " ")} end`;
  }

  /** Null where the row is null. */
  protected *tableItem(table: PgTable, type: GraphQLOutputType, nodes: readonly FieldNode[], row: SQL): Stepwise<SQL> {
    const item = yield* this.rowItem(table, type, nodes, row);
    return mayBeNullRow(table) ? sql`case when ${presence(table, row)} then ${item} end` : item;
  }
}
