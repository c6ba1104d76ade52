import {
  type GraphQLNamedType,
  type GraphQLType,
  getNamedType,
  isInputObjectType,
  isInterfaceType,
  isObjectType,
  isUnionType,
} from "grafast/graphql";
import { runToCompletion, type Stepwise } from "#runtime/concurrency";

export const TypesInOrderPlugin: GraphileConfig.Plugin = {
  name: "TypesInOrderPlugin",
  description: "Collects the types of the schema in core's order without recursion",
  provides: ["CollectReferencedTypesPlugin"],
  schema: {
    hooks: {
      GraphQLSchema_types: (types, _build, { config }) => {
        const roots = [config.query, config.mutation, config.subscription].filter((root) => root != null);
        return runToCompletion(collectTypesInOrder([...types, ...roots]));
      },
    },
  },
};

/**
 * The types reachable from these, in the order in which the constructor of GraphQLSchema collects them. The constructor recurses per
 * type, so a path of some thousand types exceeds the stack. Listed types, which are roots too, keep the order of the roots. Yields once
 * per type.
 */
export function* collectTypesInOrder(
  roots: Iterable<GraphQLType>,
  listed: ReadonlySet<GraphQLType> = new Set(),
): Stepwise<GraphQLNamedType[]> {
  const found = new Set<GraphQLNamedType>();
  const path: Iterator<GraphQLType>[] = [roots[Symbol.iterator]()];
  for (let referring = path.at(-1); referring; referring = path.at(-1)) {
    const next = referring.next();
    if (next.done) {
      path.pop();
      continue;
    }
    const type = getNamedType(next.value);
    if (found.has(type) || (path.length > 1 && listed.has(type))) continue;
    found.add(type);
    path.push(referencedTypesOf(type));
    yield;
  }
  return [...found];
}

function* referencedTypesOf(type: GraphQLNamedType): Generator<GraphQLType, void, undefined> {
  if (isUnionType(type)) yield* type.getTypes();
  else if (isInputObjectType(type)) for (const field of Object.values(type.getFields())) yield field.type;
  else if (isObjectType(type) || isInterfaceType(type)) {
    yield* type.getInterfaces();
    for (const field of Object.values(type.getFields())) {
      yield field.type;
      for (const argument of field.args) yield argument.type;
    }
  }
}
