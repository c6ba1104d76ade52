import {
  type ASTNode,
  type DirectiveNode,
  type DocumentNode,
  GraphQLError,
  Kind,
  OperationTypeNode,
  type SelectionNode,
  type SelectionSetNode,
} from "postgraphile/graphql";

/**
 * What is wrong with conditions at the root of subscriptions. A subscription is one field, and which one is decided before there
 * are variables; where a condition leaves none, execution would fail.
 */
export function subscriptionFaults({ definitions }: DocumentNode): GraphQLError[] {
  const fragments = new Map<string, SelectionSetNode>();
  for (const definition of definitions) {
    if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments.set(definition.name.value, definition.selectionSet);
  }
  return definitions.flatMap((definition) => {
    if (definition.kind !== Kind.OPERATION_DEFINITION) return [];
    if (definition.operation !== OperationTypeNode.SUBSCRIPTION) return [];
    const selections = selectionsOf(definition.selectionSet, fragments, new Set());
    const variable = selections
      .flatMap(conditionsOf)
      .filter((condition) => conditionValue(condition)?.kind === Kind.VARIABLE);
    if (variable.length > 0) {
      return [fault("A condition at the root of a subscription cannot depend on a variable.", variable)];
    }
    // A fragment that there is not is refused by validation.
    const isSelected = selections.some(
      (selection) =>
        selection.kind === Kind.FIELD ||
        (selection.kind === Kind.FRAGMENT_SPREAD && !fragments.has(selection.name.value)),
    );
    return isSelected
      ? []
      : [fault("The subscription selects nothing: a condition leaves its field out.", [definition])];
  });
}

/** Those at the root that no condition leaves out, with those of fragments in their place. */
function selectionsOf(
  { selections }: SelectionSetNode,
  fragments: ReadonlyMap<string, SelectionSetNode>,
  spread: Set<string>,
): SelectionNode[] {
  return selections
    .filter((selection) => !conditionsOf(selection).some(leavesOut))
    .flatMap((selection) => {
      if (selection.kind === Kind.FIELD) return [selection];
      if (selection.kind === Kind.INLINE_FRAGMENT) {
        return [selection, ...selectionsOf(selection.selectionSet, fragments, spread)];
      }
      const { value: name } = selection.name;
      const set = fragments.get(name);
      if (!set || spread.has(name)) return [selection];
      spread.add(name);
      return [selection, ...selectionsOf(set, fragments, spread)];
    });
}

function conditionsOf({ directives = [] }: SelectionNode): DirectiveNode[] {
  return directives.filter(({ name }) => name.value === "skip" || name.value === "include");
}

function leavesOut(condition: DirectiveNode): boolean {
  const value = conditionValue(condition);
  return value?.kind === Kind.BOOLEAN && value.value === (condition.name.value === "skip");
}

function conditionValue({ arguments: given = [] }: DirectiveNode) {
  return given.find(({ name }) => name.value === "if")?.value;
}

function fault(message: string, nodes: readonly ASTNode[]): GraphQLError {
  return new GraphQLError(message, { nodes, extensions: { code: "GRAPHQL_VALIDATION_FAILED" } });
}
