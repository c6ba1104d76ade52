import { ResponseBudget } from "#postgres/database";
import { GraphqlRefusal } from "../documents/graphql-refusal.ts";
import { UndecidedOperation } from "../schemas/early-schema.ts";
import type { ServedSchema } from "../schemas/role-schemas.ts";
import { openLiveQuery } from "./open-live-query.ts";
import type { OperationDependencies, OperationParameters, OperationStages } from "./operation.ts";
import type { SharedBudgets } from "./operation-memory.ts";
import { plan } from "./plan.ts";
import { query } from "./query.ts";
import { recordOperation } from "./recorded-operation.ts";
import { run } from "./run.ts";
import { takeSteps } from "./run-fields.ts";

/** The stages of operations over HTTP and WebSocket, with what all of them share. */
export function makeOperationStages(dependencies: OperationDependencies): OperationStages {
  const { schemaOf, upcomingSchemaOf, whenUpcoming, whenBuilt, byteLimits } = dependencies;
  const shared: SharedBudgets = {
    rows: new ResponseBudget(byteLimits.together),
    responses: new ResponseBudget(byteLimits.answers),
  };
  const stages: OperationStages = {
    plan(parameters, requestInfo) {
      const { role } = requestInfo.authentication.caller;
      const isLong = isLongDocument(parameters);
      const planWith = (served: ServedSchema) =>
        takeSteps(plan(dependencies, shared, served, parameters, requestInfo, isLong), { isLong, requestInfo });
      const planNow = () => {
        const served = schemaOf(role);
        return served instanceof Promise ? served.then(planWith) : planWith(served);
      };
      const planUpcoming = (refusal: unknown) => {
        const upcoming = isInvalidOperation(refusal) ? upcomingSchemaOf(role) : null;
        if (!upcoming) throw refusal;
        return recover(
          () => planWith(upcoming),
          (early) => {
            if (!(early instanceof UndecidedOperation)) throw refusal;
            return whenBuilt().then(planNow);
          },
        );
      };
      return recover(planNow, (refusal) => {
        const soon = isInvalidOperation(refusal) ? whenUpcoming() : null;
        return soon ? soon.then(() => recover(planNow, planUpcoming)) : planUpcoming(refusal);
      });
    },
    query: (planned) => takeSteps(query(dependencies.compilation, planned), planned),
    async run(planned, bound) {
      const outcome = await (planned.live
        ? openLiveQuery(dependencies, stages, planned.live, planned.requestInfo)
        : run(dependencies, planned, bound));
      const hasErrors = outcome.kind === "result" && (outcome.result.errors?.length ?? 0) > 0;
      if (!hasErrors) recordOperation(dependencies.recorder, planned, bound);
      return outcome;
    },
  };
  return stages;
}

/** True if the document may be valid for another schema. */
function isInvalidOperation(error: unknown): boolean {
  return error instanceof GraphqlRefusal && error.errors[0]?.extensions.code === "GRAPHQL_VALIDATION_FAILED";
}

/** Synchronous if the attempt is. */
function recover<T>(attempt: () => T | Promise<T>, onError: (error: unknown) => T | Promise<T>): T | Promise<T> {
  try {
    const result = attempt();
    return result instanceof Promise ? result.catch(onError) : result;
  } catch (error) {
    return onError(error);
  }
}

/** Documents up to this length are parsed and compiled in a few milliseconds. */
const SHORT_DOCUMENT_LENGTH = 1_000;

function isLongDocument({ query }: OperationParameters): boolean {
  return query.length > SHORT_DOCUMENT_LENGTH;
}
