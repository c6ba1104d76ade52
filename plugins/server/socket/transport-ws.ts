import type { ExecutionArgs, ExecutionResult } from "grafast/graphql";
import { makeServer, type Server } from "graphql-ws";
import { GraphqlRefusal } from "../documents.ts";
import { toGraphQLError } from "../errors.ts";
import type { PreparedOperation } from "../operation.ts";
import type { SocketConnection } from "./connection.ts";

/** https://github.com/enisdenjo/graphql-ws/blob/master/PROTOCOL.md */
export const TRANSPORT_WS = "graphql-transport-ws";

export type TransportWs = Server<SocketConnection>;

export function makeTransportWs({ initTimeoutMs }: { initTimeoutMs: number }): TransportWs {
  return makeServer<Record<string, unknown>, SocketConnection>({
    connectionInitWaitTimeout: initTimeoutMs,
    onConnect: async ({ extra, connectionParams }) => {
      await extra.identify(connectionParams);
      return true;
    },
    onSubscribe: async ({ extra }, id, payload) => {
      try {
        return await extra.prepare(id, payload, extra.message);
      } catch (error) {
        return error instanceof GraphqlRefusal ? error.errors : [toGraphQLError(error)];
      }
    },
    execute: runOperation,
    subscribe: runOperation,
    onNext: ({ extra }, _id, _payload, _args, result) => extra.toPayload(result),
    onError: ({ extra }, id, _payload, errors) => {
      extra.ended(id);
      return extra.explainAll(errors);
    },
    onComplete: ({ extra }, id) => extra.ended(id),
  });
}

/** Receives the arguments from `onSubscribe`. A rejection would close the socket with all its operations. */
async function runOperation(args: ExecutionArgs) {
  try {
    const outcome = await (args as PreparedOperation).run();
    return outcome.kind === "stream" ? outcome.results : (outcome.result as ExecutionResult);
  } catch (error) {
    return { errors: [toGraphQLError(error)] };
  }
}
