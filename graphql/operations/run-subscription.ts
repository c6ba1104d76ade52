import { locatedError } from "grafast/graphql";
import type { RowEvent } from "#plugins";
import { type EventField, findEventField } from "../compile/find-event-field.ts";
import { toPgText } from "../compile/text-values.ts";
import type { CallerDatabase } from "./caller-database.ts";
import type { RowEventHub } from "./events.ts";
import type { OperationOutcome, PlannedOperation } from "./operation.ts";
import type { OperationResult } from "./run-compiled.ts";
import { SubscriptionResults } from "./subscription-delivery.ts";

type SubscriptionDependencies = { readonly database: Pick<CallerDatabase, "run">; readonly events: RowEventHub };

/** Opens the stream of results of a subscription, each of which is the row of an event. */
export async function runSubscription(
  { database, events }: SubscriptionDependencies,
  planned: PlannedOperation,
  runEvent: (event: RowEvent) => Promise<OperationResult>,
): Promise<OperationOutcome> {
  const { schema, document, operationName = null, variableValues } = planned.args;
  const field = findEventField({ schema, document, operationName, variables: variableValues ?? {} });
  if (!("source" in field)) return { kind: "result", result: { errors: field } };
  const queue = await events.open();
  try {
    const topic = await topicOf(database, planned, field);
    return { kind: "stream", results: new SubscriptionResults(queue, topic, runEvent) };
  } catch (error) {
    queue.close();
    return { kind: "result", result: { errors: [locatedError(error, field.nodes, [field.key])] } };
  }
}

function topicOf(
  database: SubscriptionDependencies["database"],
  { context, requestInfo: { signal } }: PlannedOperation,
  { source, value }: EventField,
): Promise<string> {
  return source.topicFor(value, async (text, values) => {
    const statement = { text, values: values.map(toPgText) };
    const { rows } = await database.run(context, statement, { readOnly: true, signal });
    const cell = rows[0]?.[0];
    return cell == null ? cell : String(cell);
  });
}
