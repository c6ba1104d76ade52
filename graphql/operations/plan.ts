import type { GraphQLError } from "grafast/graphql";
import { callerKey } from "#accounts/identity";
import { isTransaction } from "#plugins";
import { type Stepwise, waitForLargeWorkSlot } from "#runtime/concurrency";
import { tooComplexError } from "../documents/document-size.ts";
import type { ServedSchema } from "../schemas/role-schemas.ts";
import type {
  OperationDependencies,
  OperationParameters,
  OperationRequestInfo,
  PlannedOperation,
} from "./operation.ts";
import { OperationMemory, type SharedBudgets } from "./operation-memory.ts";

/** Document + schema → a checked operation with its variables and limits. Throws a GraphqlRefusal for what the client must correct. */
export function* plan(
  { introspection, contextOf, byteLimits, anonymous, limitCreatedUsers }: OperationDependencies,
  shared: SharedBudgets,
  served: ServedSchema,
  parameters: OperationParameters,
  requestInfo: OperationRequestInfo,
  isLong: boolean,
): Stepwise<PlannedOperation> {
  const { query, operationName, variables: sentVariables, parseExactVariables } = parameters;
  const { caller } = requestInfo.authentication;
  const checked = yield* served.documents.read(query);
  if (checked.isIntrospection) introspection.check(caller.role);
  const selected = checked.operation(operationName);
  const kind = selected.operation;
  const variables = checked.restoreDigits(selected)?.(sentVariables, parseExactVariables) ?? sentVariables;
  checked.checkVariables(selected, variables);

  // An anonymous account costs nothing, so it brings no more.
  const isAnonymous = caller.role === anonymous.role || caller.claims.is_anonymous === true;
  const isOneTransaction = isTransaction(selected);
  const memory = new OperationMemory(shared, {
    kind,
    commitsBeforeResponse: kind === "mutation" && !isOneTransaction,
    maxRowBytes: byteLimits.operation,
    maxResponseBytes: isAnonymous ? anonymous.maxResponseBytes : byteLimits.operation,
    waitForSlot: () => waitForLargeWorkSlot(callerKey(caller.claims, requestInfo.address)),
  });
  const liveDocument = checked.live(selected);
  return {
    kind,
    served,
    args: { schema: served.schema, document: checked.document, variableValues: variables, operationName },
    checked,
    selected,
    isOneTransaction,
    memory,
    requestInfo,
    context: contextOf(requestInfo, kind),
    isLong,
    countSignUp: limitCreatedUsers && (() => limitCreatedUsers(caller, requestInfo.address)),
    event: null,
    live: liveDocument && { document: liveDocument, parameters },
    runFieldsRefusal: isAnonymous ? refusalToRunFields(checked.branches, anonymous.maxBranches) : null,
  };
}

function refusalToRunFields(branches: number, max: number): GraphQLError | null {
  if (branches <= max) return null;
  const fact = `An operation of an anonymous caller that cannot run as one statement has ${branches} fields with subselections`;
  return tooComplexError(fact, max);
}
