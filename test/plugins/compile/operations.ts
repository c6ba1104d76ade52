import fc from "fast-check";
import {
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLInputField,
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

export type GeneratedOperation = { readonly query: string; readonly variables: Readonly<Record<string, unknown>> };

/** Values that the database may know, by the name of their scalar. */
export type ValuePool = Readonly<Record<string, readonly unknown[]>>;

/** The ends of the names of arguments' types with which operations are not compiled. */
const RUN_BY_GRAFAST: ReadonlySet<string> = new Set(["WhereInput", "OrderByInput"]);

type Choose = fc.GeneratorValue;
type Field = GraphQLField<unknown, unknown>;

const MAX_DEPTH = 5;
const CURSORS: ReadonlySet<string> = new Set(["after", "before"]);
const COUNTS: ReadonlySet<string> = new Set(["first", "last", "limit", "offset"]);

/** Queries of a schema: all kinds of arguments, variables, aliases, fragments and conditions. `cursors` are those of earlier answers. */
export function operationsOf(
  schema: GraphQLSchema,
  pool: ValuePool,
  cursors: ReadonlyMap<string, readonly string[]>,
): fc.Arbitrary<GeneratedOperation> {
  return fc.gen().map((choose) => new OperationWriter(choose, pool, cursors).write(schema.getQueryType()!));
}

/** Mutations of one field. */
export function mutationsOf(schema: GraphQLSchema, pool: ValuePool): fc.Arbitrary<GeneratedOperation> {
  return fc.gen().map((choose) => {
    return new OperationWriter(choose, pool, new Map()).write(schema.getMutationType()!, "mutation", 1);
  });
}

class OperationWriter {
  readonly #choose: Choose;
  readonly #pool: ValuePool;
  readonly #cursors: ReadonlyMap<string, readonly string[]>;
  readonly #declarations: string[] = [];
  readonly #fragments: string[] = [];
  readonly #variables: Record<string, unknown> = {};

  constructor(choose: Choose, pool: ValuePool, cursors: ReadonlyMap<string, readonly string[]>) {
    this.#choose = choose;
    this.#pool = pool;
    this.#cursors = cursors;
  }

  write(root: GraphQLObjectType, kind = "query", fields = this.#below(2) + 1): GeneratedOperation {
    const selection = this.#selection(root, 1, fields);
    const declared = this.#declarations.length === 0 ? "" : `(${this.#declarations.join(", ")})`;
    const query = [`${kind}${declared} ${selection}`, ...this.#fragments].join("\n");
    return { query, variables: this.#variables };
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
    const given = this.#arguments(name, args);
    const list = given.length === 0 ? "" : `(${given.join(", ")})`;
    const named = getNamedType(type);
    const below = isObjectType(named) ? ` ${this.#selection(named, depth + 1)}` : "";
    return `${isAliased ? `${key}: ` : ""}${name}${list}${below}`;
  }

  #arguments(field: string, args: readonly GraphQLArgument[]): string[] {
    // Together they are refused.
    const side = this.#happens(50) ? ["last", "before"] : ["first", "after"];
    return args.flatMap((argument) => {
      const { name } = argument;
      if (RUN_BY_GRAFAST.has(getNamedType(argument.type).name.replace(/^.*(?=Where|OrderBy)/, ""))) return [];
      if (!this.#hasValue(argument.type)) return [];
      const isOtherSide = /^(first|last|after|before)$/.test(name) && !side.includes(name) && !this.#happens(2);
      // Without `last`, the first page is requested.
      const isKept = side.includes("last") && name === "last" && !this.#happens(3);
      if (!isKept && !isRequiredArgument(argument) && (isOtherSide || this.#happens(60))) return [];
      if (CURSORS.has(name) && getNamedType(argument.type).name === "String" && !this.#cursors.get(field)?.length)
        return [];
      const value = this.#valueOf(argument, field);
      if (!this.#happens(50)) return [`${name}: ${toLiteral(value, argument.type)}`];
      return [`${name}: ${this.#variable(String(argument.type), value)}`];
    });
  }

  #variable(type: string, value: unknown): string {
    const name = `v${this.#declarations.length}`;
    this.#declarations.push(`$${name}: ${type}`);
    this.#variables[name] = value;
    return `$${name}`;
  }

  #hasValue(type: GraphQLInputType): boolean {
    const named = getNamedType(type);
    if (isEnumType(named)) return true;
    if (!isInputObjectType(named)) return (this.#pool[named.name]?.length ?? 0) > 0;
    const fields = Object.values(named.getFields());
    return fields.filter(isRequiredInputField).every((field) => this.#hasValue(field.type));
  }

  #valueOf({ name, type }: GraphQLArgument | GraphQLInputField, field: string): unknown {
    if (!isNonNullType(type) && name !== "last" && this.#happens(5)) return null;
    if (COUNTS.has(name)) return this.#oneOf([1, 1, 2, 3, 5, 12, this.#happens(3) ? -1 : 0]);
    if (CURSORS.has(name) && this.#cursors.get(field)?.length)
      return this.#happens(3) ? "W10=" : this.#oneOf(this.#cursors.get(field)!);
    return this.#inputValue(type, field);
  }

  #inputValue(type: GraphQLInputType, field: string): unknown {
    if (isNonNullType(type)) return this.#inputValue(type.ofType, field);
    if (isListType(type)) return Array.from({ length: this.#below(3) }, () => this.#inputValue(type.ofType, field));
    if (isEnumType(type)) return this.#oneOf(type.getValues()).name;
    if (!isInputObjectType(type)) return this.#oneOf(this.#pool[type.name]!);
    const fields = Object.values(type.getFields()).filter(
      (each) => isRequiredInputField(each) || (this.#hasValue(each.type) && this.#happens(30)),
    );
    return Object.fromEntries(fields.map((each) => [each.name, this.#valueOf(each, field)]));
  }
}

function toLiteral(value: unknown, type: GraphQLInputType): string {
  if (isNonNullType(type)) return toLiteral(value, type.ofType);
  if (value === null) return "null";
  if (isListType(type)) return `[${(value as unknown[]).map((item) => toLiteral(item, type.ofType)).join(", ")}]`;
  if (isEnumType(type)) return String(value);
  if (!isInputObjectType(type)) return JSON.stringify(value);
  const fields = Object.entries(value as object).map(
    ([name, member]) => `${name}: ${toLiteral(member, type.getFields()[name]!.type)}`,
  );
  return `{ ${fields.join(", ")} }`;
}
