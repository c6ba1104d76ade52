import { setTimeout as sleep } from "node:timers/promises";
import type { Caller } from "../../engine/caller/caller.ts";
import type { Table } from "../../engine/catalog/tables.ts";
import type { Database } from "../../engine/database/database.ts";
import type { Context } from "../../engine/database/statement.ts";
import { toApiError } from "../../engine/errors.ts";
import type { Group } from "./audience.ts";
import { HIDDEN, type Image, judgementQuery, readVerdict, type Verdict, VISIBLE } from "./judgement.ts";

export type Judge = (group: Group, table: Table, images: readonly Image[]) => Promise<readonly Verdict[]>;

type JudgeOptions = {
  readonly database: Pick<Database, "run">;
  readonly contextOf: (caller: Caller) => Context;
  /** What a policy or a filter takes longer for is not waited for. */
  readonly timeoutMs: number;
  /** How long a database that is away may stay away. */
  readonly patienceMs?: number;
};

const PAUSE_MS = 200;
/** Those of whose kind one has taken too long are waited for no longer than this, for a while: nobody is to be held up again and again. */
const SHORT_MS = 200;
const LATELY_MS = 60_000;
const CANCELED = "57014";

/** Asks Postgres as one of the group; not at all where that could hide nothing. */
export function makeJudge({ database, contextOf, timeoutMs, patienceMs = 30_000 }: JudgeOptions): Judge {
  const slowUntil = new Map<string, number>();

  const ask = async (group: Group, table: Table, images: readonly Image[]): Promise<readonly Verdict[]> => {
    const { rows, questions, caller } = group;
    const statement = judgementQuery({ table, rows, questions }, images);
    const kind = `${table.oid} ${caller.role} ${questions.length > 0}`;
    const isSlow = (slowUntil.get(kind) ?? 0) > performance.now();
    const limit = isSlow ? Math.min(SHORT_MS, timeoutMs) : timeoutMs;
    try {
      const answer = await database.run(contextOf(caller), statement, { readOnly: true, timeoutMs: limit });
      return answer.rows.map((row) => readVerdict(questions, row));
    } catch (error) {
      if (toApiError(error).code === CANCELED) slowUntil.set(kind, performance.now() + LATELY_MS);
      throw error;
    }
  };

  return async (group, table, images) => {
    const { rows, questions } = group;
    if (typeof rows === "string" && questions.length === 0) {
      return images.map(() => (rows === "all" ? VISIBLE : HIDDEN));
    }
    const end = performance.now() + patienceMs;
    for (;;) {
      try {
        return await ask(group, table, images);
      } catch (error) {
        if (toApiError(error).status !== 503 || performance.now() > end) throw error;
        await sleep(PAUSE_MS);
      }
    }
  };
}
