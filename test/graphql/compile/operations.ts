import fc from "fast-check";
import {
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLInputField,
  type GraphQLInputObjectType,
  type GraphQLInputType,
  type GraphQLObjectType,
  type GraphQLSchema,
  getNamedType,
  isEnumType,
  isInputObjectType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
  isRequiredArgument,
  isRequiredInputField,
} from "grafast/graphql";

export type GeneratedOperation = {
  readonly query: string;
  readonly variables: Readonly<Record<string, unknown>>;
  /** The values of `orderBy` of root fields, by response key. */
  readonly orders?: ReadonlyMap<string, unknown>;
};

/** A cursor is valid only with the `orderBy` that it was read with; undefined is none. */
export type KnownCursor = { readonly cursor: string; readonly orderBy: unknown };
type KnownCursors = ReadonlyMap<string, readonly KnownCursor[]>;

/** Values that the database may know, by the name of their scalar. */
export type ValuePool = Readonly<Record<string, readonly unknown[]>>;

type Choose = fc.GeneratorValue;
type Field = GraphQLField<unknown, unknown>;

const MAX_DEPTH = 5;
const CURSORS: ReadonlySet<string> = new Set(["after", "before"]);
/** A malformed one is an error only where Postgres evaluates it, which depends on the plan of the statement. */
const TEXT_QUERIES = ["de & !summer", "one | su:*", ""];
const LANGUAGES = ["simple", "english", "simple", "none such"];
/** Inputs with a field per column, relation or operator. */
const CONDITIONS = /(Where|Operators)Input_*$/;
const WHERE = /WhereInput_*$/;
/** Rows that are inserted with the row around them. */
const NESTED = /NestedInput$/;
const ORDER = /OrderByInput_*$/;
const MAX_INPUT_DEPTH = 3;
const COUNTS: ReadonlySet<string> = new Set(["first", "last", "limit", "offset"]);

/** Queries of a schema: all kinds of arguments, variables, aliases, fragments and conditions. `cursors` are those of earlier answers. */
export function operationsOf(
  schema: GraphQLSchema,
  pool: ValuePool,
  cursors: KnownCursors,
): fc.Arbitrary<GeneratedOperation> {
  return fc.gen().map((choose) => new OperationWriter(choose, pool, cursors).write(schema.getQueryType()!));
}

/** Mutations with one of these numbers of fields. */
export function mutationsOf(
  schema: GraphQLSchema,
  pool: ValuePool,
  counts: readonly number[] = [1, 1, 1, 2, 3],
): fc.Arbitrary<GeneratedOperation> {
  return fc.gen().map((choose) => {
    const writer = new OperationWriter(choose, pool, new Map());
    return writer.write(schema.getMutationType()!, "mutation", choose(fc.constantFrom, ...counts));
  });
}

class OperationWriter {
  readonly #choose: Choose;
  readonly #pool: ValuePool;
  readonly #cursors: KnownCursors;
  readonly #declarations: string[] = [];
  readonly #fragments: string[] = [];
  readonly #variables: Record<string, unknown> = {};
  readonly #orders = new Map<string, unknown>();

  constructor(choose: Choose, pool: ValuePool, cursors: KnownCursors) {
    this.#choose = choose;
    this.#pool = pool;
    this.#cursors = cursors;
  }

  write(root: GraphQLObjectType, kind = "query", fields = this.#below(2) + 1): GeneratedOperation {
    const selection = this.#selection(root, 1, fields);
    const declared = this.#declarations.length === 0 ? "" : `(${this.#declarations.join(", ")})`;
    const query = [`${kind}${declared} ${selection}`, ...this.#fragments].join("\n");
    return { query, variables: this.#variables, orders: this.#orders };
  }

  #below(limit: number): number {
    return this.#choose(fc.nat, { max: limit - 1 });
  }

  #happens(percent: number): boolean {
    return this.#below(100) < percent;
  }

  #oneOf<T>(values: readonly T[]): T {
    return values[this.#below(values.length)]!;
  }

  #selection(type: GraphQLObjectType, depth: number, count = this.#below(4) + 1): string {
    const fields = Object.values(type.getFields()).filter((field) => this.#isUsable(field, depth));
    const keys = new Set<string>();
    const parts: string[] = [];
    for (let index = 0; index < count && fields.length > 0; index++) {
      parts.push(this.#withCondition(this.#field(this.#oneOf(fields), depth, keys)));
    }
    if (parts.length === 0 || this.#happens(10)) parts.push("__typename");
    if (!this.#happens(12)) return `{ ${parts.join(" ")} }`;
    const text = `{ ${parts.join(" ")} }`;
    if (this.#happens(50)) return `{ ...${this.#withCondition(` on ${type.name}`)} ${text} __typename }`;
    const name = `F${this.#fragments.length}`;
    this.#fragments.push(`fragment ${name} on ${type.name} ${text}`);
    return `{ ...${name} __typename ...${name} }`;
  }

  #isUsable({ type, args }: Field, depth: number): boolean {
    const named = getNamedType(type);
    if (args.some((argument) => isRequiredArgument(argument) && !this.#hasValue(argument.type))) return false;
    return isLeafType(named) || (isObjectType(named) && depth < MAX_DEPTH);
  }

  /** A condition before a selection set or behind a name. */
  #withCondition(text: string): string {
    if (!this.#happens(5)) return text;
    const included = this.#happens(70);
    const directive = this.#happens(50)
      ? `@include(if: ${included})`
      : `@skip(if: ${this.#variable("Boolean!", !included)})`;
    const brace = text.indexOf(" {");
    return brace < 0 ? `${text} ${directive}` : `${text.slice(0, brace)} ${directive}${text.slice(brace)}`;
  }

  #field(field: Field, depth: number, keys: Set<string>): string {
    const { name, type, args } = field;
    const isAliased = keys.has(name) || this.#happens(10);
    const key = isAliased ? `a${keys.size}${this.#declarations.length}${name}` : name;
    keys.add(key);
    const cursor = args.some((argument) => CURSORS.has(argument.name)) ? this.#cursorOf(name) : null;
    const orderBy = this.#orderFor(args, cursor);
    if (depth === 1) this.#orders.set(key, orderBy);
    const given = this.#arguments(args, cursor, orderBy);
    const list = given.length === 0 ? "" : `(${given.join(", ")})`;
    const named = getNamedType(type);
    const below = isObjectType(named) ? ` ${this.#selection(named, depth + 1)}` : "";
    return `${isAliased ? `${key}: ` : ""}${name}${list}${below}`;
  }

  #cursorOf(field: string): KnownCursor | null {
    const known = this.#cursors.get(field) ?? [];
    if (known.length === 0 || this.#happens(30)) return null;
    return this.#happens(3) ? { cursor: "W10=", orderBy: undefined } : this.#oneOf(known);
  }

  /** Undefined is no argument. */
  #orderFor(args: readonly GraphQLArgument[], cursor: KnownCursor | null): unknown {
    const argument = args.find(({ name, type }) => name === "orderBy" && ORDER.test(getNamedType(type).name));
    if (!argument) return undefined;
    if (cursor && !this.#happens(3)) return cursor.orderBy;
    return this.#happens(60) ? undefined : this.#valueOf(argument);
  }

  #arguments(args: readonly GraphQLArgument[], known: KnownCursor | null, orderBy: unknown): string[] {
    // The service refuses both together.
    const side = this.#happens(50) ? ["last", "before"] : ["first", "after"];
    return args.flatMap((argument) => {
      const { name } = argument;
      if (!this.#hasValue(argument.type)) return [];
      if (name === "orderBy" && ORDER.test(getNamedType(argument.type).name))
        return orderBy === undefined ? [] : [this.#given(argument, orderBy)];
      const isOtherSide = /^(first|last|after|before)$/.test(name) && !side.includes(name) && !this.#happens(2);
      // Without `last`, the first page is requested.
      const isKept = side.includes("last") && name === "last" && !this.#happens(3);
      if (!isKept && !isRequiredArgument(argument) && (isOtherSide || this.#happens(60))) return [];
      if (!CURSORS.has(name) || getNamedType(argument.type).name !== "String")
        return [this.#given(argument, this.#valueOf(argument))];
      return known === null ? [] : [this.#given(argument, this.#happens(5) ? null : known.cursor)];
    });
  }

  #given({ name, type }: GraphQLArgument, value: unknown): string {
    return `${name}: ${this.#happens(50) ? this.#variable(String(type), value) : this.#literal(value, type)}`;
  }

  #variable(type: string, value: unknown): string {
    const name = `v${this.#declarations.length}`;
    this.#declarations.push(`$${name}: ${type}`);
    // Absent values of variables are not nulls.
    if (value !== null || this.#happens(50)) this.#variables[name] = value;
    return `$${name}`;
  }

  #hasValue(type: GraphQLInputType): boolean {
    const named = getNamedType(type);
    if (isEnumType(named)) return true;
    if (!isInputObjectType(named)) return (this.#pool[named.name]?.length ?? 0) > 0;
    const fields = Object.values(named.getFields());
    return fields.filter(isRequiredInputField).every((field) => this.#hasValue(field.type));
  }

  #valueOf({ name, type }: GraphQLArgument | GraphQLInputField, depth = 0): unknown {
    if (!isNonNullType(type) && name !== "last" && this.#happens(5)) return null;
    if (COUNTS.has(name)) return this.#oneOf([1, 1, 2, 3, 5, 12, this.#happens(3) ? -1 : 0]);
    if (name === "language" && getNamedType(type).name === "String") return this.#oneOf(LANGUAGES);
    const value = this.#inputValue(type, depth);
    return name === "fts" && isInputObjectType(type)
      ? { ...(value as object), query: this.#oneOf(TEXT_QUERIES) }
      : value;
  }

  #inputValue(type: GraphQLInputType, depth: number): unknown {
    if (isNonNullType(type)) return this.#inputValue(type.ofType, depth);
    if (isListType(type)) return Array.from({ length: this.#below(3) }, () => this.#inputValue(type.ofType, depth));
    if (isEnumType(type)) return this.#oneOf(type.getValues()).name;
    if (!isInputObjectType(type)) return this.#oneOf(this.#pool[type.name]!);
    if (type.isOneOf) return this.#oneFieldOf(type, depth);
    const fields = this.#fieldsOf(type, depth);
    return Object.fromEntries(fields.map((each) => [each.name, this.#valueOf(each, depth + 1)]));
  }

  #fieldsOf(type: GraphQLInputObjectType, depth: number): GraphQLInputField[] {
    const fields = Object.values(type.getFields()).filter(({ type: inner }) => {
      return this.#hasValue(inner) && (depth < MAX_INPUT_DEPTH || !NESTED.test(getNamedType(inner).name));
    });
    if (!CONDITIONS.test(type.name)) return fields.filter((each) => isRequiredInputField(each) || this.#happens(30));
    const usable = fields.filter((each) => depth < MAX_INPUT_DEPTH || !WHERE.test(getNamedType(each.type).name));
    const count = usable.length === 0 ? 0 : this.#oneOf([1, 1, 1, 1, 2, 2, 3, 0]);
    return [...new Set(Array.from({ length: count }, () => this.#oneOf(usable)))];
  }

  /** Returns one column, of the row or of one that it is related to. */
  #oneFieldOf(type: GraphQLInputObjectType, depth: number): unknown {
    const fields = Object.values(type.getFields());
    const columns = fields.filter((each) => isEnumType(getNamedType(each.type)));
    const usable = depth < MAX_INPUT_DEPTH || columns.length === 0 ? fields : columns;
    const { name, type: inner } = this.#oneOf(usable);
    return { [name]: this.#inputValue(inner, depth + 1) };
  }

  /** Prints a value, with variables for some fields and items. */
  #literal(value: unknown, type: GraphQLInputType): string {
    if (isNonNullType(type)) return this.#literal(value, type.ofType);
    if (value === null) return "null";
    if (isEnumType(type)) return String(value);
    if (isListType(type)) {
      const items = (value as unknown[]).map((item) => this.#member(item, type.ofType, false));
      return items.length === 1 && this.#happens(30) ? items[0]! : `[${items.join(", ")}]`;
    }
    // JSON has no literals in GraphQL.
    if (!isInputObjectType(type))
      return typeof value === "object" ? this.#variable(String(type), value) : JSON.stringify(value);
    const fields = Object.entries(value as object).map(([name, member]) => {
      return `${name}: ${this.#member(member, type.getFields()[name]!.type, ORDER.test(type.name))}`;
    });
    return `{ ${fields.join(", ")} }`;
  }

  #member(value: unknown, type: GraphQLInputType, isOneOf: boolean): string {
    // Grafast builds lists of scalars that contain variables.
    if (isLeafType(getNamedType(type)) && isListType(type) && !this.#happens(20)) return this.#literal(value, type);
    if (!this.#happens(15)) return this.#literal(value, type);
    return this.#variable(isOneOf ? `${type}!` : String(type), value);
  }
}
