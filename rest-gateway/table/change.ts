import type { Caller } from "../../engine/caller/caller.ts";
import type { Ask } from "../../engine/database/as-login.ts";
import type { Database } from "../../engine/database/database.ts";
import type { Isolation } from "../../engine/database/exchange.ts";
import type { Context, Statement } from "../../engine/database/statement.ts";
import type { GatewayRequest, GatewayResponse } from "../http.ts";
import { identityOf } from "../idempotency/identity.ts";
import type { Change } from "../idempotency/once.ts";

type Transaction = {
  readonly context: Context;
  readonly database: Database;
  readonly isolation: Isolation | null;
  /** Called at every attempt: it may refuse one that would be told what an earlier one was. */
  readonly before: Statement | undefined;
  /** Of each statement; without it the usual limit holds. */
  readonly timeoutMs?: number;
};
type Asked = Transaction & {
  readonly key: string;
  readonly request: GatewayRequest;
  readonly body: Buffer;
  readonly caller: Caller;
  readonly make: (ask: Ask) => Promise<GatewayResponse>;
};

const ONE_DAY = 86_400;
/** Of a write: those by which another answer would be asked for. */
const SHAPING = ["content-type", "content-profile", "accept", "prefer"] as const;

/** A write under an Idempotency-Key, in a transaction that is begun by itself. */
export function tableChange(asked: Asked): Change {
  const { key, request, body, caller, make } = asked;
  const { method, path, rawQuery, headers, signal } = request;
  return {
    key,
    scope: "table",
    identity: identityOf(caller),
    request: [method, path, rawQuery, body, ...SHAPING.map((name) => String(headers[name] ?? ""))],
    lifetimeSeconds: ONE_DAY,
    signal,
    transact: inTransaction(asked),
    make,
  };
}

/** Begun by itself, as the function that is called or the caller's role would have it. */
export function inTransaction({ context, database, isolation, before, timeoutMs }: Transaction): Change["transact"] {
  return (work) => {
    const inside = async (ask: Ask) => {
      if (before) await ask(before);
      return work(ask);
    };
    const terms = { ...(isolation !== null && { isolation }), ...(timeoutMs !== undefined && { timeoutMs }) };
    return database.transaction(context, inside, terms);
  };
}
