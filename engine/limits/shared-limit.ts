import type { QueryConfig } from "pg";
import { RateLimiterMemory, RateLimiterPostgres, RateLimiterRes } from "rate-limiter-flexible";
import type { AsOwner } from "../database/as-owner.ts";

export type SharedLimit = {
  /** Takes one of a key's; null when there was one, else the seconds until there is one again. */
  take(key: string): Promise<number | null>;
};

type Options = {
  readonly name: string;
  readonly points: number;
  readonly seconds: number;
  readonly asOwner: AsOwner;
};

/**
 * For what is rare and dear: asks Postgres each time, so that all gateways keep one count to the letter. While Postgres
 * is away, or has no table to count in, each counts by itself.
 */
export function makeSharedLimit({ name, points, seconds, asOwner }: Options): SharedLimit {
  const terms = { keyPrefix: name, points, duration: seconds };
  const limiter = new RateLimiterPostgres({
    ...terms,
    storeClient: { query: (query: QueryConfig) => asOwner((client) => client.query(query)) },
    storeType: "client",
    schemaName: "private",
    tableName: "rate_limits",
    tableCreated: true,
    insuranceLimiter: new RateLimiterMemory(terms),
  });
  return {
    async take(key) {
      try {
        await limiter.consume(key);
        return null;
      } catch (thrown) {
        if (thrown instanceof RateLimiterRes) return Math.ceil(thrown.msBeforeNext / 1000);
        throw thrown;
      }
    },
  };
}
