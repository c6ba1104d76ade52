import { type SQL, sql } from "@dataplan/pg/pg-sql2";
import { bakedInputRuntime } from "grafast";
import {
  type DirectiveNode,
  type DocumentNode,
  type FieldNode,
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLInputType,
  type GraphQLSchema,
  getNamedType,
  getNullableType,
  isInputObjectType,
  isListType,
  Kind,
  type ValueNode,
  valueFromAST,
} from "grafast/graphql";
import { type Codec, isNestedValue } from "#plugins";
import type { ParameterValue } from "#postgres/statement";
import { isJsonObject } from "#runtime/json";
import { toPgText } from "./text-values.ts";

/** Variables after coercion to their types. */
export type CoercedVariables = Readonly<Record<string, unknown>>;

/** An operation of a document, with the variables of a request. */
export type RequestedOperation = {
  readonly schema: GraphQLSchema;
  readonly document: DocumentNode;
  readonly operationName: string | null;
  readonly variables: CoercedVariables;
};

export type LeafReader = (variables: CoercedVariables) => unknown;

/** The value of an argument or input field. An absent value is not null: the default of a function replaces only absent ones. */
export type InputValue =
  | { readonly kind: "absent" | "null" }
  /** Read from the variables of each request; a literal is the same for all. Related rows to insert are one value. */
  | { readonly kind: "leaf"; readonly read: LeafReader }
  | { readonly kind: "object"; readonly fields: ReadonlyMap<string, InputValue>; readonly bake: Bake }
  /** A list of input objects; a list of scalars is a leaf. */
  | { readonly kind: "list"; readonly items: readonly InputValue[]; readonly bake: Bake };

/** Converts the value of an input to that of a codec: the fields of a composite type become its attributes. */
type Bake = (value: unknown) => unknown;

export const ABSENT: InputValue = { kind: "absent" };
const NULL: InputValue = { kind: "null" };

/** The name under which the variables hold the keys of an event; it is none of GraphQL. */
export const EVENT_KEYS = "event:keys";

/** The columns that identify the row of an event, in Postgres's text format. */
export type EventKeys = Readonly<Record<string, string | null>>;

export function eventKeysOf(variables: CoercedVariables): EventKeys {
  return (variables[EVENT_KEYS] ?? {}) as EventKeys;
}

/** The name under which the variables hold the number of bytes that the response may have. */
export const MAX_BYTES = "response:bytes";

/** A parameter of a compiled statement. */
export type Parameter = (variables: CoercedVariables) => ParameterValue;

/**
 * The values in one operation. Where the value of a variable becomes part of the SQL text, its name is noted: the statement serves
 * only requests with the same value.
 */
export class OperationValues {
  readonly #variables: CoercedVariables;
  readonly #fixed: Set<string>;

  readonly #schema: GraphQLSchema;

  /** `fixed` collects the names of variables whose values are in the text. */
  constructor(schema: GraphQLSchema, variables: CoercedVariables, fixed: Set<string>) {
    this.#schema = schema;
    this.#variables = variables;
    this.#fixed = fixed;
  }

  /** True if `@skip` or `@include` excludes the selection. */
  isExcluded(directives: readonly DirectiveNode[] = []): boolean {
    return directives.some(({ name, arguments: args = [] }) => {
      if (name.value !== "skip" && name.value !== "include") return false;
      const condition = args.find(({ name: argument }) => argument.value === "if")!.value;
      return this.#booleanOf(condition) === (name.value === "skip");
    });
  }

  #booleanOf(node: ValueNode): unknown {
    if (node.kind !== Kind.VARIABLE) return node.kind === Kind.BOOLEAN && node.value;
    this.#fixed.add(node.name.value);
    return this.#variables[node.name.value];
  }

  /** Arguments that the caller does not know must not be given: another plugin has added them. */
  argumentsOf(
    field: GraphQLField<unknown, unknown>,
    node: FieldNode,
    isKnown: (argument: GraphQLArgument) => boolean,
  ): ReadonlyMap<string, InputValue> {
    const nodes = new Map(node.arguments?.map(({ name, value }) => [name.value, value]));
    return new Map(
      field.args.map((argument) => {
        const { name, type, defaultValue } = argument;
        const value = this.#read(type, nodes.get(name), defaultValue);
        const isGiven = value.kind !== "absent" && value.kind !== "null";
        if (isGiven && !isKnown(argument)) throw new TypeError(`The argument ${name} has no meaning in SQL`);
        return [name, value];
      }),
    );
  }

  /** The value of an argument that becomes part of the text. Null when it is absent or null. */
  constant(name: string, node: FieldNode, value: InputValue | undefined): unknown {
    if (value === undefined || value.kind === "absent" || value.kind === "null") return null;
    const given = node.arguments?.find((argument) => argument.name.value === name)?.value;
    if (given) for (const variable of variablesIn(given)) this.#fixed.add(variable);
    return argumentValue(value, this.#variables);
  }

  /** The value of a scalar that becomes part of the text. */
  constantOf(read: LeafReader): unknown {
    const noted = new Proxy(this.#variables, {
      get: (variables, name: string) => {
        this.#fixed.add(name);
        return variables[name];
      },
    });
    return read(noted);
  }

  #read(type: GraphQLInputType, node: ValueNode | undefined, defaultValue: unknown): InputValue {
    if (node === undefined) return defaultValue === undefined ? ABSENT : this.#fixedValue(type, defaultValue);
    const itemType = itemObjectTypeOf(type);
    if (itemType && (node.kind === Kind.LIST || node.kind === Kind.OBJECT)) {
      const items = node.kind === Kind.LIST ? node.values : [node];
      return {
        kind: "list",
        items: items.map((item) => this.#read(itemType, item, undefined)),
        bake: this.#baking(type),
      };
    }
    if (node.kind === Kind.NULL) return NULL;
    if (node.kind === Kind.VARIABLE) {
      const name = node.name.value;
      if (this.#variables[name] === undefined && defaultValue !== undefined)
        return this.#fixedValue(type, defaultValue);
      return this.#valueAt(type, this.#variables[name], (variables) => variables[name]);
    }
    const object = getNullableType(type);
    if (node.kind === Kind.OBJECT && isInputObjectType(object)) {
      const nodes = new Map(node.fields.map(({ name, value }) => [name.value, value]));
      const fields = Object.values(object.getFields()).map(
        (field) => [field.name, this.#read(field.type, nodes.get(field.name), field.defaultValue)] as const,
      );
      return { kind: "object", fields: new Map(fields), bake: this.#baking(type) };
    }
    if (variablesIn(node).length > 0)
      return { kind: "leaf", read: (variables) => valueFromAST(node, type, variables as Record<string, unknown>) };
    return this.#fixedValue(type, valueFromAST(node, type));
  }

  #baking(type: GraphQLInputType): Bake {
    return (value) => bakedInputRuntime(this.#schema, type, value);
  }

  #fixedValue(type: GraphQLInputType, value: unknown): InputValue {
    return this.#valueAt(type, value, () => value);
  }

  #valueAt(type: GraphQLInputType, value: unknown, read: LeafReader): InputValue {
    if (value === undefined) return ABSENT;
    if (value === null) return NULL;
    if (isNestedValue(type)) return { kind: "leaf", read };
    const itemType = itemObjectTypeOf(type);
    if (itemType) {
      const items = (value as readonly unknown[]).map((item, index) =>
        this.#valueAt(itemType, item, (variables) => (read(variables) as readonly unknown[])[index]),
      );
      return { kind: "list", items, bake: this.#baking(type) };
    }
    const named = getNullableType(type);
    if (!isInputObjectType(named)) return { kind: "leaf", read };
    const members = value as Readonly<Record<string, unknown>>;
    const fields = Object.values(named.getFields()).map(
      ({ name, type: fieldType }) =>
        [
          name,
          Object.hasOwn(members, name)
            ? this.#valueAt(fieldType, members[name], (variables) => (read(variables) as typeof members)[name])
            : ABSENT,
        ] as const,
    );
    return { kind: "object", fields: new Map(fields), bake: this.#baking(type) };
  }
}

function variablesIn(node: ValueNode): string[] {
  if (node.kind === Kind.VARIABLE) return [node.name.value];
  if (node.kind === Kind.LIST) return node.values.flatMap(variablesIn);
  return node.kind === Kind.OBJECT ? node.fields.flatMap(({ value }) => variablesIn(value)) : [];
}

/** The type of the items of a list of input objects. */
function itemObjectTypeOf(type: GraphQLInputType): GraphQLInputType | null {
  const list = getNullableType(type);
  return isListType(list) && isInputObjectType(getNamedType(list)) ? list.ofType : null;
}

/** The value in the form that variables have, with its leaves replaced. */
export function mapLeaves(value: InputValue, replace: (read: LeafReader) => unknown): unknown {
  switch (value.kind) {
    case "absent":
      return undefined;
    case "null":
      return null;
    case "leaf":
      return replace(value.read);
    case "list":
      return value.items.map((item) => mapLeaves(item, replace));
    case "object": {
      const given = [...value.fields].filter(([, field]) => field.kind !== "absent");
      return Object.fromEntries(given.map(([name, field]) => [name, mapLeaves(field, replace)]));
    }
  }
}

/** The value of an argument in one request. */
export function argumentValue(value: InputValue, variables: CoercedVariables): unknown {
  return mapLeaves(value, (read) => read(variables));
}

/** Describes which values are given, null and absent, and how many items a list of objects has: statements differ in that. */
export function presenceOf(value: unknown, type: GraphQLInputType): string {
  if (value === undefined) return "-";
  if (value === null) return "0";
  if (isNestedValue(type)) return "1";
  const itemType = itemObjectTypeOf(type);
  if (itemType) return `[${(value as readonly unknown[]).map((item) => presenceOf(item, itemType)).join("")}]`;
  const named = getNullableType(type);
  if (!isInputObjectType(named) || !isJsonObject(value)) return "1";
  const fields = Object.values(named.getFields()).map(({ name, type: fieldType }) =>
    presenceOf(Object.hasOwn(value, name) ? value[name] : undefined, fieldType),
  );
  return `{${fields.join("")}}`;
}

/** The value as a parameter of the codec's type. */
export function parameterSql(
  value: InputValue,
  codec: Codec,
  toValue: (value: unknown) => unknown = (same) => same,
): SQL {
  if (value.kind === "object" || value.kind === "list")
    return leafSql((variables) => value.bake(argumentValue(value, variables)), codec, toValue);
  return leafSql(value.kind === "leaf" ? value.read : () => null, codec, toValue);
}

/** The SQL of a parameter, as `parameterSql` writes it, for a value that is read from the variables. */
export function leafSql(read: LeafReader, codec: Codec, toValue: (value: unknown) => unknown = (same) => same): SQL {
  return parameterOf((variables) => {
    const given = read(variables);
    return given == null ? null : toPgText(codec.toPg(toValue(given)));
  }, codec);
}

/** pg-sql2 passes values through, so a parameter can be one until the values are known. */
export function parameterOf(parameter: Parameter, { sqlType }: Codec): SQL {
  return sql`${sql.value(parameter as never)}::${sqlType}`;
}

/** The values of one request. */
export function bindParameters(
  parameters: readonly (Parameter | ParameterValue)[],
  variables: CoercedVariables,
): ParameterValue[] {
  return parameters.map((parameter) => (typeof parameter === "function" ? parameter(variables) : parameter));
}
