import type { Caller } from "../../engine/caller/caller.ts";
import type { Ask } from "../../engine/database/as-login.ts";
import type { Database } from "../../engine/database/database.ts";
import type { Isolation } from "../../engine/database/exchange.ts";
import type { Context, Statement } from "../../engine/database/statement.ts";
import type { GatewayRequest, GatewayResponse } from "../http.ts";
import type { KeyedRequest } from "../idempotency/idempotent-runner.ts";
import type { PreparedTask } from "../tasks/prepared-task.ts";
import { queryWithoutApiKey } from "./api-key.ts";

type Transact = PreparedTask["transact"];
type Transaction = {
  readonly context: Context;
  readonly database: Database;
  readonly isolation: Isolation | null;
  /** Called at every attempt: it may refuse one that would be told what an earlier one was. */
  readonly before: Statement | undefined;
  /** Of each statement; without it the usual limit holds. */
  readonly timeoutMs?: number;
};
type Asked = {
  readonly key: string;
  readonly request: GatewayRequest;
  readonly body: Buffer;
  readonly caller: Caller;
  readonly make: (ask: Ask) => Promise<GatewayResponse>;
};

const SHAPING = ["content-type", "content-profile", "accept", "prefer"] as const;

/** A write under an Idempotency-Key. */
export function tableChange({ key, request, body, caller, make }: Asked): KeyedRequest {
  return {
    key,
    scope: "table",
    caller,
    request,
    parts: [request.method, request.path, queryWithoutApiKey(request.headers, request.rawQuery), body],
    shaping: SHAPING,
    make,
  };
}

/** Begun by itself, as the function that is called or the caller's role would have it. */
export function transactionFor({ context, database, isolation, before, timeoutMs }: Transaction): Transact {
  return (work) => {
    const inside = async (ask: Ask) => {
      if (before) await ask(before);
      return work(ask);
    };
    const terms = { ...(isolation !== null && { isolation }), ...(timeoutMs !== undefined && { timeoutMs }) };
    return database.transaction(context, inside, terms);
  };
}
