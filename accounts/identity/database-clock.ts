import type { AsOwner } from "#postgres/database";
import type { Logger } from "#runtime/log";
import { CLOCK_SKEW_SECONDS } from "./claims.ts";

/** The time by the database's clock, in seconds since 1970. */
export type DatabaseClock = () => Promise<number>;

type DatabaseClockOptions = { readonly asOwner: AsOwner; readonly log: Pick<Logger, "warn"> };

const CACHE_MS = 60_000;

/** Queries the difference between the two clocks once a minute, and logs a warning if it makes tokens invalid. */
export function makeDatabaseClock({ asOwner, log }: DatabaseClockOptions): DatabaseClock {
  let cached: { readonly secondsAhead: Promise<number>; readonly until: number } | null = null;

  const queryDifference = async (): Promise<number> => {
    const { rows } = await asOwner((client) =>
      client.query<{ now: number }>(
        "select extract(epoch from pg_catalog.clock_timestamp())::pg_catalog.float8 as now",
      ),
    );
    const secondsAhead = Math.round(rows[0]!.now - Date.now() / 1000);
    if (Math.abs(secondsAhead) > CLOCK_SKEW_SECONDS) {
      log.warn({ secondsAhead }, "the clock of the database is not that of this gateway: set both by NTP");
    }
    return secondsAhead;
  };

  return async () => {
    if (!cached || performance.now() > cached.until) {
      cached = { secondsAhead: queryDifference(), until: performance.now() + CACHE_MS };
    }
    const { secondsAhead } = cached;
    try {
      return Math.floor(Date.now() / 1000) + (await secondsAhead);
    } catch (error) {
      cached = null;
      throw error;
    }
  };
}
