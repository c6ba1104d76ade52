import type { Caller } from "../../engine/caller/caller.ts";
import type { Table } from "../../engine/catalog/tables.ts";
import type { Database } from "../../engine/database/database.ts";
import { isTimeout } from "../../engine/database/faults.ts";
import type { Context } from "../../engine/database/statement.ts";

import { repeatWhileAway } from "./repeat-while-away.ts";
import type { Image } from "./row-images.ts";
import type { RowSight } from "./sight.ts";
import { visibilityQuery } from "./visibility-query.ts";

/** Those whom one caller stands for. */
export type Viewer = { readonly caller: Caller; readonly rows: RowSight };

/** Says of each row whether it is visible. */
export type CheckVisibility = (viewer: Viewer, table: Table, images: readonly Image[]) => Promise<readonly boolean[]>;

type CheckOptions = {
  readonly database: Pick<Database, "run">;
  readonly contextOf: (caller: Caller) => Context;
  /** What a policy takes longer for is not waited for. */
  readonly timeoutMs: number;
};

/** Those of whose kind one has taken too long are waited for no longer than this, for a while: nobody is to be held up again and again. */
const SHORT_MS = 200;
const LATELY_MS = 60_000;

/** Asks Postgres as one of them; not at all where no policy could hide a row. */
export function makeVisibilityCheck({ database, contextOf, timeoutMs }: CheckOptions): CheckVisibility {
  const slowUntil = new Map<string, number>();

  const ask = async (caller: Caller, using: string, table: Table, images: readonly Image[]) => {
    const kind = `${table.oid} ${caller.role}`;
    const isSlow = (slowUntil.get(kind) ?? 0) > performance.now();
    const limit = isSlow ? Math.min(SHORT_MS, timeoutMs) : timeoutMs;
    const statement = visibilityQuery(table, using, images);
    try {
      const { rows } = await database.run(contextOf(caller), statement, { readOnly: true, timeoutMs: limit });
      return rows.map(([isVisible]) => isVisible === "t");
    } catch (error) {
      if (isTimeout(error)) slowUntil.set(kind, performance.now() + LATELY_MS);
      throw error;
    }
  };

  return async ({ caller, rows }, table, images) => {
    if (typeof rows === "string") return images.map(() => rows === "all");
    return repeatWhileAway(() => ask(caller, rows.using, table, images));
  };
}
