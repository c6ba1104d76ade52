import { quotaKey } from "#accounts/identity";
import { parseLsn } from "#postgres/database";
import { isJsonObject } from "#runtime/json";
import { errorsOf } from "./errors.ts";
import { LiveResults } from "./live-results.ts";
import type {
  LiveOperation,
  OperationDependencies,
  OperationOutcome,
  OperationParameters,
  OperationRequestInfo,
  OperationStages,
} from "./operation.ts";
import { runLiveQuery } from "./run-live-query.ts";

/** Opens the live query of a subscription. It is planned again for each run, by the schema of that moment. */
export async function openLiveQuery(
  dependencies: OperationDependencies,
  stages: Pick<OperationStages, "plan" | "query">,
  { document, parameters }: LiveOperation,
  { signal: _, ...requestInfo }: OperationRequestInfo,
): Promise<OperationOutcome> {
  const { query, key } = document;
  const { operationName, extensions, parseExactVariables, variables } = parameters;
  const { caller } = requestInfo.authentication;
  const hasVariables = Object.keys(variables).length > 0;
  const source = {
    request: JSON.stringify(["graphql", query, operationName, hasVariables ? parseExactVariables() : {}]),
    caller,
    quotaKey: quotaKey(caller, requestInfo.address),
    isPrivate: false,
    run: async () => {
      const planned = await stages.plan({ ...parameters, query }, requestInfo);
      return runLiveQuery(dependencies, planned, await stages.query(planned));
    },
  };
  try {
    const since = parseLsn(String(requestInfo.headers["last-event-id"] ?? ""));
    const subscription = await dependencies.live.open(source, since);
    return { kind: "live", results: new LiveResults(subscription, { key, takesPatches: takesPatches(extensions) }) };
  } catch (error) {
    return { kind: "result", result: { errors: errorsOf(error) } };
  }
}

/** `{"live": {"patches": true}}` */
function takesPatches({ live }: OperationParameters["extensions"]): boolean {
  return isJsonObject(live) && live.patches === true;
}
