import type { AsOwner } from "../database/as-owner.ts";
import type { Logger } from "../log.ts";
import { CLOCK_SKEW_SECONDS } from "./claims.ts";

/** What the database's clock says, in seconds since 1970. */
export type DatabaseTime = () => Promise<number>;

type Options = { readonly asOwner: AsOwner; readonly log: Pick<Logger, "warn"> };

const REMEMBERED_MS = 60_000;

/** Asks for the difference between the two clocks once in a while, and warns of one that refuses tokens. */
export function makeDatabaseTime({ asOwner, log }: Options): DatabaseTime {
  let known: { readonly secondsAhead: Promise<number>; readonly until: number } | null = null;

  const askAhead = async (): Promise<number> => {
    const { rows } = await asOwner((client) =>
      client.query<{ now: number }>("select extract(epoch from clock_timestamp())::float8 as now"),
    );
    const secondsAhead = Math.round(rows[0]!.now - Date.now() / 1000);
    if (Math.abs(secondsAhead) > CLOCK_SKEW_SECONDS) {
      log.warn({ secondsAhead }, "the clock of the database is not that of this gateway: set both by NTP");
    }
    return secondsAhead;
  };

  return async () => {
    if (!known || performance.now() > known.until) {
      known = { secondsAhead: askAhead(), until: performance.now() + REMEMBERED_MS };
    }
    const { secondsAhead } = known;
    try {
      return Math.floor(Date.now() / 1000) + (await secondsAhead);
    } catch (error) {
      known = null;
      throw error;
    }
  };
}
