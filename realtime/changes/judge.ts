import { setTimeout as sleep } from "node:timers/promises";
import type { Caller } from "../../engine/caller/caller.ts";
import type { Table } from "../../engine/catalog/tables.ts";
import type { Database } from "../../engine/database/database.ts";
import type { Context } from "../../engine/database/statement.ts";
import { toApiError } from "../../engine/errors.ts";
import type { Group } from "./audience.ts";
import { type Image, judgementQuery, readVerdict, type Verdict } from "./judgement.ts";

export type Judge = (group: Group, table: Table, images: readonly Image[]) => Promise<readonly Verdict[]>;

type JudgeOptions = {
  readonly database: Pick<Database, "run">;
  readonly contextOf: (caller: Caller) => Context;
  /** How long a database that is away may stay away. */
  readonly patienceMs?: number;
};

const PAUSE_MS = 200;
const UNSEEN = () => null;

/** Asks Postgres as one of the group; not at all where that could hide nothing. */
export function makeJudge({ database, contextOf, patienceMs = 30_000 }: JudgeOptions): Judge {
  const ask = async (group: Group, table: Table, images: readonly Image[]): Promise<readonly Verdict[]> => {
    const { rows, questions, caller } = group;
    const statement = judgementQuery({ table, rows, questions }, images);
    const answer = await database.run(contextOf(caller), statement, { readOnly: true });
    return answer.rows.map((row) => readVerdict(questions, row));
  };

  return async (group, table, images) => {
    const { rows, questions } = group;
    if (typeof rows === "string" && questions.length === 0) {
      return images.map(() => ({ isVisible: rows === "all", answers: UNSEEN }));
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
