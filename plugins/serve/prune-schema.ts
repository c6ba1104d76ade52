import { objectFieldSpec } from "postgraphile/grafast";
import {
  type GraphQLField,
  type GraphQLFieldConfig,
  type GraphQLFieldConfigMap,
  GraphQLInputObjectType,
  type GraphQLInputType,
  GraphQLInterfaceType,
  GraphQLList,
  type GraphQLNamedType,
  GraphQLNonNull,
  GraphQLObjectType,
  type GraphQLOutputType,
  GraphQLSchema,
  type GraphQLType,
  GraphQLUnionType,
  getNamedType,
  isInputObjectType,
  isInterfaceType,
  isListType,
  isNonNullType,
  isObjectType,
  isUnionType,
} from "postgraphile/graphql";
import type { Stepwise } from "../../engine/stepwise.ts";
import { IS_EMPTY } from "../EmptySchemaPlugin.ts";
import { typeWithoutRowOf } from "../visibility.ts";
import type { HiddenParts } from "./hidden-parts.ts";

type Composite = GraphQLObjectType | GraphQLInterfaceType;
type Field = GraphQLField<unknown, unknown>;

/** The schema without its hidden parts. A type that loses nothing, and leads to none that does, stays the same object. */
export function* pruneSchema(schema: GraphQLSchema, hidden: HiddenParts): Stepwise<GraphQLSchema> {
  const { query, mutation, subscription, extensions, types, ...config } = schema.toConfig();
  const references = yield* referencesWithin(schema, hidden);
  const pruned = new Map<GraphQLNamedType, GraphQLNamedType>();
  const current: Current = (type) => {
    if (isListType(type)) return new GraphQLList(current(type.ofType)) as never;
    if (isNonNullType(type)) return new GraphQLNonNull(current(type.ofType)) as never;
    return (pruned.get(type as GraphQLNamedType) ?? type) as never;
  };
  for (const type of changedTypes(references, hidden)) pruned.set(type, pruneType(type, hidden, current));
  // The constructor of the schema asks for all of them.
  for (const type of pruned.values()) {
    if (isComposite(type) || isInputObjectType(type)) type.getFields();
    yield;
  }

  const rootOf = (root: GraphQLObjectType | null | undefined) =>
    root && references.has(root) ? current(root) : undefined;
  return new GraphQLSchema({
    ...config,
    extensions: { ...extensions },
    query: rootOf(query) ?? emptyQuery(query!),
    mutation: rootOf(mutation),
    subscription: rootOf(subscription),
    types: types.filter((type) => references.has(type)).map(current),
  });
}

/** A type of the whole schema, as it is in the pruned one. */
type Current = <Type extends GraphQLType>(type: Type) => Type;

type References = ReadonlyMap<GraphQLNamedType, readonly GraphQLNamedType[]>;

/** The types that can be reached, each with those that it refers to. */
function* referencesWithin(schema: GraphQLSchema, hidden: HiddenParts): Stepwise<References> {
  const roots = [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()];
  const reached = new Set<GraphQLNamedType>(roots.filter((root) => root != null && !hidden.has(root)) as never);
  const references = new Map<GraphQLNamedType, readonly GraphQLNamedType[]>();
  for (const type of reached) {
    const referred = referencesOf(type, schema, hidden).filter((other) => !hidden.has(other));
    references.set(type, referred);
    for (const other of referred) reached.add(other);
    yield;
  }
  return references;
}

function referencesOf(type: GraphQLNamedType, schema: GraphQLSchema, hidden: HiddenParts): GraphQLNamedType[] {
  if (isUnionType(type)) return [...type.getTypes()];
  if (isInputObjectType(type)) return shown(type.getFields(), hidden).map((field) => getNamedType(field.type));
  if (!isComposite(type)) return [];
  const implementations = isInterfaceType(type) ? schema.getImplementations(type) : { objects: [], interfaces: [] };
  const ofFields = shown(type.getFields(), hidden).flatMap((field) => [
    getNamedType(typeOf(field, hidden)),
    ...shown(field.args, hidden).map((argument) => getNamedType(argument.type)),
  ]);
  return [...type.getInterfaces(), ...implementations.objects, ...implementations.interfaces, ...ofFields];
}

/** Those that lose something, and those that refer to one that changes. */
function changedTypes(references: References, hidden: HiddenParts): ReadonlySet<GraphQLNamedType> {
  const referring = new Map<GraphQLNamedType, GraphQLNamedType[]>([...references.keys()].map((type) => [type, []]));
  for (const [type, referred] of references) for (const other of referred) referring.get(other)!.push(type);
  const changed = new Set([...references.keys()].filter((type) => losesSomething(type, hidden)));
  for (const type of changed) for (const other of referring.get(type)!) changed.add(other);
  return changed;
}

function losesSomething(type: GraphQLNamedType, hidden: HiddenParts): boolean {
  if (isUnionType(type)) return type.getTypes().some((member) => hidden.has(member));
  if (isInputObjectType(type)) return Object.values(type.getFields()).some((field) => hidden.has(field));
  if (!isComposite(type)) return false;
  const losesPart = (field: Field) =>
    hidden.has(field) || hidden.has(getNamedType(field.type)) || field.args.some((argument) => hidden.has(argument));
  return type.getInterfaces().some((other) => hidden.has(other)) || Object.values(type.getFields()).some(losesPart);
}

function pruneType(type: GraphQLNamedType, hidden: HiddenParts, current: Current): GraphQLNamedType {
  if (isUnionType(type)) {
    const types = type.getTypes().filter((member) => !hidden.has(member));
    return new GraphQLUnionType({ ...type.toConfig(), types: () => types.map(current) });
  }
  if (isInputObjectType(type)) return pruneInput(type, hidden, current);
  if (isObjectType(type)) return new GraphQLObjectType({ ...type.toConfig(), ...pruneFields(type, hidden, current) });
  if (!isInterfaceType(type)) return type;
  return new GraphQLInterfaceType({ ...type.toConfig(), ...pruneFields(type, hidden, current) });
}

function pruneInput(type: GraphQLInputObjectType, hidden: HiddenParts, current: Current): GraphQLInputObjectType {
  const config = type.toConfig();
  const fields = shown(type.getFields(), hidden);
  return new GraphQLInputObjectType({ ...config, fields: () => withTypes(fields, config.fields, current) });
}

function pruneFields(type: Composite, hidden: HiddenParts, current: Current) {
  const config = type.toConfig();
  const interfaces = type.getInterfaces().filter((other) => !hidden.has(other));
  const fieldOf = (field: Field): GraphQLFieldConfig<unknown, unknown> => {
    const own = config.fields[field.name]!;
    const args = withTypes(shown(field.args, hidden), own.args!, current);
    return { ...own, type: current(typeOf(field, hidden)), args };
  };
  return {
    interfaces: () => interfaces.map(current),
    fields: (): GraphQLFieldConfigMap<unknown, unknown> =>
      Object.fromEntries(shown(type.getFields(), hidden).map((field) => [field.name, fieldOf(field)])),
  };
}

type Input = { readonly name: string; readonly type: GraphQLInputType };

function withTypes<Config extends { readonly type: GraphQLInputType }>(
  inputs: readonly Input[],
  configs: Readonly<Record<string, Config>>,
  current: Current,
): Record<string, Config> {
  return Object.fromEntries(inputs.map(({ name, type }) => [name, { ...configs[name]!, type: current(type) }]));
}

function shown<Part extends Field | Field["args"][number]>(
  parts: Readonly<Record<string, Part>> | readonly Part[],
  hidden: HiddenParts,
): Part[] {
  return Object.values(parts).filter((part) => !hidden.has(part));
}

function typeOf(field: Field, hidden: HiddenParts): GraphQLOutputType {
  return hidden.has(getNamedType(field.type)) ? typeWithoutRowOf(field)! : field.type;
}

function isComposite(type: GraphQLNamedType): type is Composite {
  return isObjectType(type) || isInterfaceType(type);
}

/** GraphQL has no schema without queries. */
function emptyQuery({ name, description }: GraphQLObjectType): GraphQLObjectType {
  const isEmpty = objectFieldSpec(IS_EMPTY, `${name}.isEmpty`);
  return new GraphQLObjectType({ name, description, fields: { isEmpty } });
}
