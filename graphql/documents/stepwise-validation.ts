import {
  type ASTNode,
  assertValidSchema,
  type DocumentNode,
  GraphQLError,
  type GraphQLSchema,
  Kind,
  specifiedRules,
  TypeInfo,
  ValidationContext,
  visitInParallel,
  visitWithTypeInfo,
} from "grafast/graphql";
import type { Stepwise } from "#runtime/concurrency";

/** The children that graphql-js's `validate` visits in an executable document, in its order. */
const CHILD_KEYS: Readonly<Record<string, readonly string[]>> = {
  [Kind.DOCUMENT]: ["definitions"],
  [Kind.OPERATION_DEFINITION]: ["name", "variableDefinitions", "directives", "selectionSet"],
  [Kind.VARIABLE_DEFINITION]: ["variable", "type", "defaultValue", "directives"],
  [Kind.VARIABLE]: ["name"],
  [Kind.SELECTION_SET]: ["selections"],
  [Kind.FIELD]: ["alias", "name", "arguments", "directives", "selectionSet"],
  [Kind.ARGUMENT]: ["name", "value"],
  [Kind.FRAGMENT_SPREAD]: ["name", "directives"],
  [Kind.INLINE_FRAGMENT]: ["typeCondition", "directives", "selectionSet"],
  [Kind.FRAGMENT_DEFINITION]: ["name", "variableDefinitions", "typeCondition", "directives", "selectionSet"],
  [Kind.LIST]: ["values"],
  [Kind.OBJECT]: ["fields"],
  [Kind.OBJECT_FIELD]: ["name", "value"],
  [Kind.DIRECTIVE]: ["name", "arguments"],
  [Kind.NAMED_TYPE]: ["name"],
  [Kind.LIST_TYPE]: ["type"],
  [Kind.NON_NULL_TYPE]: ["type"],
};

const TOO_MANY_ERRORS = "Too many validation errors, error limit reached. Validation aborted.";
const ABORTED = "Validation aborted.";

/** Thrown by the context, through the rules. */
class ErrorLimitReached extends Error {}

/**
 * The errors that graphql-js's `validate` finds, which visits a document in one go: as long as the limits allow, that takes some tens
 * of milliseconds.
 */
export function* validateInSteps(
  schema: GraphQLSchema,
  document: DocumentNode,
  maxErrors: number,
): Stepwise<readonly GraphQLError[]> {
  assertValidSchema(schema);
  const errors: GraphQLError[] = [];
  const types = new TypeInfo(schema);
  const context = new ValidationContext(schema, document, types, (error) => {
    errors.push(errors.length < maxErrors ? error : new GraphQLError(TOO_MANY_ERRORS));
    if (errors.length > maxErrors) throw new ErrorLimitReached();
  });
  const rules = visitInParallel(specifiedRules.map((rule) => rule(context)));
  try {
    yield* visitInSteps(document, visitWithTypeInfo(types, rules) as Visitor);
  } catch (error) {
    // The rule for merged fields throws this error when it would compare too many.
    if (error instanceof GraphQLError && error.message === ABORTED) errors.push(error);
    else if (!(error instanceof ErrorLimitReached)) throw error;
  }
  return errors;
}

type Nodes = ASTNode | readonly ASTNode[];
type Key = string | number | undefined;
type Visit = (node: ASTNode, key: Key, parent: Nodes | undefined, path: Key[], ancestors: Nodes[]) => unknown;
type Visitor = { readonly enter: Visit; readonly leave: Visit };

/** A node, or a list of nodes, that was entered. */
type Level = { readonly nodes: Nodes; readonly keys: readonly Key[]; next: number };

/** Calls the visitor as graphql-js's `visit` does, for visitors that change nothing. It does not recurse, since values may be nested deeply. */
function* visitInSteps(document: DocumentNode, { enter, leave }: Visitor): Stepwise<void> {
  const path: Key[] = [];
  const ancestors: Nodes[] = [];
  const levels: Level[] = [levelOf(document)];
  enter(document, undefined, undefined, path, ancestors);
  for (let level = levels[0]; level; level = levels.at(-1)) {
    const { nodes, keys } = level;
    if (level.next < keys.length) {
      const key = keys[level.next++]!;
      const child = (nodes as unknown as Readonly<Record<string, Nodes | undefined>>)[key];
      if (child === undefined) continue;
      path.push(key);
      if (!isList(child)) enter(child, key, nodes, path, ancestors);
      ancestors.push(nodes);
      levels.push(levelOf(child));
      continue;
    }
    levels.pop();
    const parent = ancestors.pop();
    if (!isList(nodes)) leave(nodes, path.at(-1), parent, path, ancestors);
    path.pop();
    if (!isList(nodes) && nodes.kind === Kind.FIELD) yield;
  }
}

function levelOf(nodes: Nodes): Level {
  const keys = isList(nodes) ? [...nodes.keys()] : (CHILD_KEYS[nodes.kind] ?? []);
  return { nodes, keys, next: 0 };
}

function isList(nodes: Nodes): nodes is readonly ASTNode[] {
  return Array.isArray(nodes);
}
