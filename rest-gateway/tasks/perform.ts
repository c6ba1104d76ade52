import pg from "pg";
import type { Caller, Callers } from "../../engine/caller/caller.ts";
import { parseClaims } from "../../engine/caller/claims.ts";
import { type Ask, asLogin } from "../../engine/database/as-login.ts";
import type { AsOwner } from "../../engine/database/as-owner.ts";
import type { ApiError, ErrorVerbosity } from "../../engine/errors.ts";
import type { Logger } from "../../engine/log.ts";
import { refuse } from "../gateway.ts";
import type { GatewayResponse } from "../http.ts";
import { asRequest, type KeptRequest } from "./kept-request.ts";
import type { Undertake } from "./undertaking.ts";

type Options = {
  readonly asOwner: AsOwner;
  readonly callers: () => Callers;
  /** Of the interface that the path belongs to. */
  readonly interfaceAt: (path: string) => Undertake;
  readonly tableErrorVerbosity: ErrorVerbosity;
  readonly log: Pick<Logger, "warn" | "error">;
};

type Begun = Pick<Caller, "kind" | "role" | "claimsText"> & {
  readonly request: KeptRequest;
  readonly body: Buffer;
};

// The claims as a text: numbers keep all of their digits.
const BEGIN = `
  select caller->>'kind' as kind, caller->>'role' as role, caller->>'claims' as "claimsText", request, body
  from private.begin_task($1)`;

export type Performer = {
  /** One attempt at a task. Rejects when another one is to be made, which there is not after the last. */
  perform(taskId: string, attempt: { readonly isLast: boolean }): Promise<void>;
  /** Ends the attempts that are under way, for others to make them. */
  abandon(): Promise<void>;
};

/**
 * Does a task as its caller. What it does and that it is done are committed together, so it is done once, however many
 * attempts that takes; what is refused is refused for good.
 */
export function makePerformer(options: Options): Performer {
  const { asOwner, callers, interfaceAt, tableErrorVerbosity, log } = options;
  /** Postgres's processes that work on tasks of ours. */
  const workers = new Set<string>();
  let isAbandoned = false;

  const begin = async (taskId: string): Promise<Begun | undefined> => {
    const { rows } = await asOwner((client) => client.query<Begun>(BEGIN, [taskId]));
    return rows[0];
  };

  const perform: Performer["perform"] = async (taskId, { isLast }) => {
    const begun = await begin(taskId);
    if (!begun) return;
    const caller = asCaller(begun);
    const { undertake, explain } = interfaceAt(begun.request.path);
    try {
      const objection = await callers().objectionTo(caller.claims);
      if (objection) throw objection;
      const { transact, make } = await undertake(asRequest(begun.request, begun.body), caller);
      await transact(async (ask) => {
        const worker = await hold(asLogin(ask), taskId);
        workers.add(worker);
        try {
          const answer = await make(ask);
          await finish(asLogin(ask), taskId, answer);
          return answer;
        } finally {
          workers.delete(worker);
        }
      });
    } catch (thrown) {
      const error = explain(thrown, caller);
      if (isAbandoned || thrown instanceof HeldElsewhere || (isPassing(error) && !isLast)) throw thrown;
      if (error.status >= 500) log.error({ request: begun.request.id, task: taskId, err: thrown }, "a task failed");
      const told = toRefusal(error, begun.request, tableErrorVerbosity);
      await asOwner((client) => client.query("select private.fail_task($1, $2)", [taskId, told]));
    }
  };

  const abandon = async (): Promise<void> => {
    isAbandoned = true;
    const text = "select pg_cancel_backend(worker) from unnest($1::integer[]) as worker";
    await asOwner((client) => client.query(text, [[...workers]]));
  };
  return { perform, abandon };
}

class HeldElsewhere extends Error {
  override name = "HeldElsewhere";
}

/** The process that holds it from now on. */
async function hold(ask: Ask, taskId: string): Promise<string> {
  const text = "select private.hold_task($1)::text, pg_catalog.pg_backend_pid()::text";
  const [isHeld, worker] = (await ask({ text, values: [taskId] })).rows[0]!;
  if (isHeld !== "true") throw new HeldElsewhere("Another attempt at this task is under way, or it is over");
  return worker!;
}

async function finish(ask: Ask, taskId: string, answer: GatewayResponse): Promise<void> {
  await ask({ text: "select private.finish_task($1, $2)", values: [taskId, resultOf(answer)] });
}

/** JSON is kept as it is, a text as a string, anything else in base64. */
function resultOf({ body, headers }: GatewayResponse): string {
  if (body === null || body.length === 0) return "null";
  const type = String(headers["Content-Type"] ?? "");
  if (/^application\/([\w.-]+\+)?json\b/i.test(type)) return body.toString();
  const isText = /^text\/|charset=/i.test(type);
  return JSON.stringify(isText ? body.toString() : Buffer.from(body).toString("base64"));
}

function asCaller({ kind, role, claimsText }: Begun): Caller {
  return Object.freeze({ kind, role, claims: parseClaims(claimsText) ?? {}, claimsText, expiresAt: null });
}

/** What the interface would have answered. */
function toRefusal(error: ApiError, request: KeptRequest, tableErrorVerbosity: ErrorVerbosity): string {
  const told = refuse(error, request, { errorBody: "nested", tableErrorVerbosity });
  const { error: envelope, ...body } = JSON.parse(String(told.body));
  return JSON.stringify({ status: error.status, ...(envelope ?? body) });
}

/** serialization_failure, deadlock_detected, transaction_resolution_unknown; a call under the same key that is under way */
const PASSING_CODES: readonly string[] = ["40001", "40P01", "08007", "IDEMPOTENCY_KEY_IN_USE"];

/** query_canceled: it took longer than it may, and would again. */
const GIVEN_UP = "57014";

/** What may well go better the next time: nothing was wrong with what was asked for. */
function isPassing({ status, code, cause }: ApiError): boolean {
  if (code === GIVEN_UP) return false;
  // The conventional interface has a word of its own for these.
  const told = cause instanceof pg.DatabaseError ? cause.code : code;
  return status === 503 || status === 504 || PASSING_CODES.includes(told ?? "");
}
