import pg from "pg";
import type { AsOwner } from "./database/as-owner.ts";
import type { Logger } from "./log.ts";

type Question = {
  readonly asOwner: AsOwner;
  readonly text: string;
  readonly log: Pick<Logger, "warn">;
  /** Said once where the one who is asked as the owner is not the owner. */
  readonly warning: string;
};

/** Postgres has no such function, or no such schema: a database that is not ours. */
const NOT_THERE: readonly (string | undefined)[] = ["42883", "3F000"];
const NOT_OWNER = "42501";

/** Asks a function of ours. Where there is none, or it cannot be called, nothing is known. */
export function ownerQuestion<Row extends pg.QueryResultRow>({ asOwner, text, log, warning }: Question) {
  let hasWarned = false;
  const nothingKnown = (error: unknown): Row[] => {
    const code = error instanceof pg.DatabaseError ? error.code : undefined;
    if (NOT_THERE.includes(code)) return [];
    if (code !== NOT_OWNER) throw error;
    if (!hasWarned) log.warn(warning);
    hasWarned = true;
    return [];
  };
  return (values: readonly unknown[]): Promise<Row[]> =>
    asOwner((client) => client.query<Row>(text, [...values])).then(({ rows }) => rows, nothingKnown);
}
