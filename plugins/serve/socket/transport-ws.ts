import { makeServer, type Server } from "graphql-ws";
import type { ExecutionArgs, ExecutionResult } from "postgraphile/graphql";
import { Refusal } from "../documents.ts";
import { asGraphQLError } from "../errors.ts";
import type { Operation } from "../operation.ts";
import type { Connection } from "./connection.ts";

/** https://github.com/enisdenjo/graphql-ws/blob/master/PROTOCOL.md */
export const TRANSPORT_WS = "graphql-transport-ws";

export type TransportWs = Server<Connection>;

export function makeTransportWs({ initTimeoutMs }: { initTimeoutMs: number }): TransportWs {
  return makeServer<Record<string, unknown>, Connection>({
    connectionInitWaitTimeout: initTimeoutMs,
    onConnect: async ({ extra, connectionParams }) => {
      await extra.identify(connectionParams);
      return true;
    },
    onSubscribe: async ({ extra }, id, payload) => {
      try {
        return await extra.prepare(id, payload, extra.message);
      } catch (error) {
        return error instanceof Refusal ? error.errors : [asGraphQLError(error)];
      }
    },
    execute: run,
    subscribe: run,
    onNext: ({ extra }, _id, _payload, _args, result) => extra.toPayload(result),
    onError: ({ extra }, id, _payload, errors) => {
      extra.ended(id);
      return extra.explainAll(errors);
    },
    onComplete: ({ extra }, id) => extra.ended(id),
  });
}

/** What `onSubscribe` returned comes back here. A rejection would close the socket, and all that is open on it. */
async function run(args: ExecutionArgs) {
  try {
    const outcome = await (args as Operation).run();
    return outcome.kind === "stream" ? outcome.results : (outcome.result as ExecutionResult);
  } catch (error) {
    return { errors: [asGraphQLError(error)] };
  }
}
