import {
  type GraphQLArgument,
  GraphQLEnumType,
  type GraphQLEnumValue,
  GraphQLError,
  type GraphQLField,
  type GraphQLFieldConfig,
  type GraphQLFieldConfigMap,
  type GraphQLInputField,
  GraphQLInputObjectType,
  type GraphQLInputType,
  GraphQLInterfaceType,
  GraphQLList,
  type GraphQLNamedType,
  GraphQLNonNull,
  GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLSchema,
  type GraphQLType,
  GraphQLUnionType,
  getNamedType,
  getNullableType,
  isEnumType,
  isInputObjectType,
  isInterfaceType,
  isListType,
  isNonNullType,
  isObjectType,
  isRequiredArgument,
  isRequiredInputField,
  isUnionType,
} from "grafast/graphql";
import type { OwnValue } from "#catalog";
import {
  fallbackTypeOf,
  IS_EMPTY_FIELD,
  isLosableInterface,
  isVisibleTo,
  type RolePrivileges,
  sourceOf,
  withheldValueOf,
  withSource,
} from "#plugins";
import type { Stepwise } from "#runtime/concurrency";
import { makeSchema } from "./stepwise-schema.ts";

type OutputCompositeType = GraphQLObjectType | GraphQLInterfaceType;
type SchemaField = GraphQLField<unknown, unknown>;

/** The error of a withheld field, which leaves the rest of the response intact. */
export const withheldError = new GraphQLError("Sign in to read this field.", { extensions: { code: "FORBIDDEN" } });

/** The schema without the hidden elements, and with an error for each withheld field, which is nullable. A type that is unchanged, and refers to no changed type, stays the same object. */
export function* pruneSchema(schema: GraphQLSchema, pruning: SchemaPruning): Stepwise<GraphQLSchema> {
  const { hidden } = pruning;
  const { query, mutation, subscription, extensions, types, ...config } = schema.toConfig();
  const references = yield* collectReferences(schema, hidden);
  const pruned = new Map<GraphQLNamedType, GraphQLNamedType>();
  const prunedTypeOf: PrunedTypeOf = (type) => {
    if (isListType(type)) return new GraphQLList(prunedTypeOf(type.ofType)) as never;
    if (isNonNullType(type)) return new GraphQLNonNull(prunedTypeOf(type.ofType)) as never;
    return (pruned.get(type as GraphQLNamedType) ?? type) as never;
  };
  for (const type of yield* changedTypes(references, pruning)) pruned.set(type, pruneType(type, pruning, prunedTypeOf));
  // Evaluated in steps here, since the schema's constructor evaluates all at once.
  for (const type of pruned.values()) {
    if (isComposite(type) || isInputObjectType(type)) type.getFields();
    yield;
  }

  const rootOf = (root: GraphQLObjectType | null | undefined) =>
    root && references.has(root) ? prunedTypeOf(root) : undefined;
  return yield* makeSchema({
    ...config,
    extensions: { ...extensions },
    query: rootOf(query) ?? emptyQuery(query!),
    mutation: rootOf(mutation),
    subscription: rootOf(subscription),
    types: types.filter((type) => references.has(type)).map(prunedTypeOf),
  });
}

/** Maps a type of the whole schema to the pruned one. */
type PrunedTypeOf = <Type extends GraphQLType>(type: Type) => Type;

type TypeReferences = ReadonlyMap<GraphQLNamedType, readonly GraphQLNamedType[]>;

/** The reachable types, each with the types that it refers to. */
function* collectReferences(schema: GraphQLSchema, hidden: HiddenElements): Stepwise<TypeReferences> {
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

function referencesOf(type: GraphQLNamedType, schema: GraphQLSchema, hidden: HiddenElements): GraphQLNamedType[] {
  if (isUnionType(type)) return [...type.getTypes()];
  if (isInputObjectType(type)) return withoutHidden(type.getFields(), hidden).map((field) => getNamedType(field.type));
  if (!isComposite(type)) return [];
  const implementations = isInterfaceType(type) ? schema.getImplementations(type) : { objects: [], interfaces: [] };
  const ofFields = withoutHidden(type.getFields(), hidden).flatMap((field) => [
    getNamedType(outputTypeOrFallback(field, hidden)),
    ...withoutHidden(field.args, hidden).map((argument) => getNamedType(argument.type)),
  ]);
  return [...keptInterfaces(type, hidden), ...implementations.objects, ...implementations.interfaces, ...ofFields];
}

/** Types that lose an element or have a withheld one, and types that refer to a changed type. */
function* changedTypes(
  references: TypeReferences,
  { hidden, withheld }: SchemaPruning,
): Stepwise<ReadonlySet<GraphQLNamedType>> {
  const referring = new Map<GraphQLNamedType, GraphQLNamedType[]>([...references.keys()].map((type) => [type, []]));
  for (const [type, referred] of references) for (const other of referred) referring.get(other)!.push(type);
  const withholds = (type: GraphQLNamedType) =>
    isComposite(type) && Object.values(type.getFields()).some((field) => withheld.has(field));
  const changed = new Set<GraphQLNamedType>();
  for (const type of references.keys()) {
    if (losesElement(type, hidden) || withholds(type)) changed.add(type);
    yield;
  }
  for (const type of changed) for (const other of referring.get(type)!) changed.add(other);
  return changed;
}

function losesElement(type: GraphQLNamedType, hidden: HiddenElements): boolean {
  if (isUnionType(type)) return type.getTypes().some((member) => hidden.has(member));
  if (isInputObjectType(type)) return Object.values(type.getFields()).some((field) => hidden.has(field));
  if (isEnumType(type)) return type.getValues().some((value) => hidden.has(value));
  if (!isComposite(type)) return false;
  const losesPart = (field: SchemaField) =>
    hidden.has(field) || hidden.has(getNamedType(field.type)) || field.args.some((argument) => hidden.has(argument));
  return (
    keptInterfaces(type, hidden).length < type.getInterfaces().length || Object.values(type.getFields()).some(losesPart)
  );
}

function pruneType(type: GraphQLNamedType, pruning: SchemaPruning, prunedTypeOf: PrunedTypeOf): GraphQLNamedType {
  const { hidden } = pruning;
  if (isUnionType(type)) {
    const types = type.getTypes().filter((member) => !hidden.has(member));
    return new GraphQLUnionType({ ...type.toConfig(), types: () => types.map(prunedTypeOf) });
  }
  if (isInputObjectType(type)) return pruneInput(type, hidden, prunedTypeOf);
  if (isEnumType(type)) return pruneEnum(type, hidden);
  if (isObjectType(type))
    return new GraphQLObjectType({ ...type.toConfig(), ...pruneFields(type, pruning, prunedTypeOf) });
  if (!isInterfaceType(type)) return type;
  return new GraphQLInterfaceType({ ...type.toConfig(), ...pruneFields(type, pruning, prunedTypeOf) });
}

function pruneInput(
  type: GraphQLInputObjectType,
  hidden: HiddenElements,
  prunedTypeOf: PrunedTypeOf,
): GraphQLInputObjectType {
  const config = type.toConfig();
  const fields = withoutHidden(type.getFields(), hidden);
  return new GraphQLInputObjectType({ ...config, fields: () => withTypes(fields, config.fields, prunedTypeOf) });
}

function pruneEnum(type: GraphQLEnumType, hidden: HiddenElements): GraphQLEnumType {
  const config = type.toConfig();
  const values = type.getValues().filter((value) => !hidden.has(value));
  return new GraphQLEnumType({
    ...config,
    values: Object.fromEntries(values.map(({ name }) => [name, config.values[name]!])),
  });
}

function pruneFields(type: OutputCompositeType, { hidden, withheld }: SchemaPruning, prunedTypeOf: PrunedTypeOf) {
  const config = type.toConfig();
  const interfaces = keptInterfaces(type, hidden);
  const fieldOf = (field: SchemaField): GraphQLFieldConfig<unknown, unknown> => {
    const own = config.fields[field.name]!;
    const args = withTypes(withoutHidden(field.args, hidden), own.args!, prunedTypeOf);
    const pruned = { ...own, type: prunedTypeOf(outputTypeOrFallback(field, hidden)), args };
    const ownValue = withheld.get(field);
    if (ownValue === undefined) return pruned;
    return (ownValue && toOwnField(field, pruned, ownValue)) ?? toWithheldField(pruned);
  };
  return {
    interfaces: () => interfaces.map(prunedTypeOf),
    fields: (): GraphQLFieldConfigMap<unknown, unknown> =>
      Object.fromEntries(withoutHidden(type.getFields(), hidden).map((field) => [field.name, fieldOf(field)])),
  };
}

function keptInterfaces(type: OutputCompositeType, hidden: HiddenElements): readonly GraphQLInterfaceType[] {
  const lacksField = (other: GraphQLInterfaceType) =>
    Object.keys(other.getFields()).some((name) => hidden.has(type.getFields()[name]!));
  return type
    .getInterfaces()
    .filter((other) => !hidden.has(other) && !(isLosableInterface(other) && lacksField(other)));
}

function toWithheldField(config: GraphQLFieldConfig<unknown, unknown>): GraphQLFieldConfig<unknown, unknown> {
  return withSource({ ...config, type: getNullableType(config.type) }, { kind: "withheld", error: withheldError });
}

/** The field with the value of the caller's own rows, which is null for others; null if it is no plain value. */
function toOwnField(field: SchemaField, config: FieldConfig, own: OwnValue): FieldConfig | null {
  const source = sourceOf(field);
  if (source?.kind !== "column" || source.table || source.codec.attributes) return null;
  const nullable = { ...config, type: getNullableType(config.type) };
  return withSource(nullable, { kind: "own value", codec: source.codec, ...own });
}

type FieldConfig = GraphQLFieldConfig<unknown, unknown>;

type InputElement = { readonly name: string; readonly type: GraphQLInputType };

function withTypes<Config extends { readonly type: GraphQLInputType }>(
  inputs: readonly InputElement[],
  configs: Readonly<Record<string, Config>>,
  prunedTypeOf: PrunedTypeOf,
): Record<string, Config> {
  return Object.fromEntries(inputs.map(({ name, type }) => [name, { ...configs[name]!, type: prunedTypeOf(type) }]));
}

function withoutHidden<Part extends SchemaField | SchemaField["args"][number]>(
  parts: Readonly<Record<string, Part>> | readonly Part[],
  hidden: HiddenElements,
): Part[] {
  return Object.values(parts).filter((part) => !hidden.has(part));
}

function outputTypeOrFallback(field: SchemaField, hidden: HiddenElements): GraphQLOutputType {
  return hidden.has(getNamedType(field.type)) ? fallbackTypeOf(field)! : field.type;
}

function isComposite(type: GraphQLNamedType): type is OutputCompositeType {
  return isObjectType(type) || isInterfaceType(type);
}

/** GraphQL requires a query type. */
function emptyQuery({ name, description }: GraphQLObjectType): GraphQLObjectType {
  return new GraphQLObjectType({ name, description, fields: { isEmpty: IS_EMPTY_FIELD } });
}

type SchemaElement = GraphQLNamedType | SchemaField | GraphQLArgument | GraphQLInputField | GraphQLEnumValue;

export type HiddenElements = ReadonlySet<SchemaElement>;

/** Fields with personal data that the role may not read, except its own where there is a function for it. */
export type WithheldFields = ReadonlyMap<SchemaField, OwnValue | null>;

export type SchemaPruning = { readonly hidden: HiddenElements; readonly withheld: WithheldFields };

export function* findWithheldFields(schema: GraphQLSchema, role: RolePrivileges): Stepwise<WithheldFields> {
  const withheld = new Map<SchemaField, OwnValue | null>();
  for (const type of Object.values(schema.getTypeMap())) {
    for (const field of outputFieldsOf(type)) {
      const own = withheldValueOf(field, role);
      if (own !== undefined) withheld.set(field, own);
    }
    yield;
  }
  return withheld;
}

/** Finds the elements of a schema for which the role has no privileges, and those that are unusable without them. */
export function* findHiddenElements(schema: GraphQLSchema, role: RolePrivileges): Stepwise<HiddenElements> {
  const types = Object.values(schema.getTypeMap()).filter(({ name }) => !name.startsWith("__"));
  const hidden = new Set<SchemaElement>();
  for (const type of types) {
    for (const element of forbiddenElements(type, schema, role)) hidden.add(element);
    yield;
  }
  let count = 0;
  while (count < hidden.size) {
    count = hidden.size;
    for (const type of types) {
      for (const element of unusableElements(type, hidden)) hidden.add(element);
      yield;
    }
  }
  return hidden;
}

function forbiddenElements(type: GraphQLNamedType, schema: GraphQLSchema, role: RolePrivileges): SchemaElement[] {
  const isForbidden = (element: Exclude<SchemaElement, GraphQLNamedType>) => !isVisibleTo(element, role);
  if (isInputObjectType(type)) return Object.values(type.getFields()).filter(isForbidden);
  if (isEnumType(type)) return type.getValues().filter(isForbidden);
  const isForbiddenField = (field: SchemaField) => {
    const fields = implementationsOf(field, type, schema);
    return isLosableInterface(type) ? fields.slice(1).every(isForbidden) : fields.some(isForbidden);
  };
  return outputFieldsOf(type).flatMap((field): SchemaElement[] =>
    isForbiddenField(field) ? [field] : field.args.filter(isForbidden),
  );
}

/** The field, and for an interface also its implementations. */
function implementationsOf(field: SchemaField, type: GraphQLNamedType, schema: GraphQLSchema): SchemaField[] {
  if (!isInterfaceType(type)) return [field];
  const { objects, interfaces } = schema.getImplementations(type);
  return [field, ...[...objects, ...interfaces].flatMap((other) => other.getFields()[field.name] ?? [])];
}

/** Elements of hidden types, and types without visible fields. */
function unusableElements(type: GraphQLNamedType, hidden: HiddenElements): SchemaElement[] {
  const isHidden = (of: GraphQLType) => hidden.has(getNamedType(of));
  if (isUnionType(type)) return type.getTypes().every(isHidden) ? [type] : [];
  if (isInputObjectType(type)) {
    const fields = Object.values(type.getFields());
    const unusable = fields.filter((field) => isHidden(field.type));
    return unusable.some(isRequiredInputField) || fields.every((field) => hidden.has(field)) ? [type] : unusable;
  }
  if (isEnumType(type)) return type.getValues().every((value) => hidden.has(value)) ? [type] : [];
  const fields = outputFieldsOf(type);
  if (fields.length > 0 && fields.every((field) => hidden.has(field))) return [type];
  return fields.flatMap((field): SchemaElement[] => {
    const unusable = field.args.filter((argument) => isHidden(argument.type));
    return (isHidden(field.type) && !fallbackTypeOf(field)) || unusable.some(isRequiredArgument) ? [field] : unusable;
  });
}

/** Empty for types other than objects and interfaces. */
function outputFieldsOf(type: GraphQLNamedType): SchemaField[] {
  return isObjectType(type) || isInterfaceType(type) ? Object.values(type.getFields()) : [];
}
