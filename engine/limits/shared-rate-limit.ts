import type { QueryConfig } from "pg";
import { RateLimiterMemory, RateLimiterPostgres, RateLimiterRes } from "rate-limiter-flexible";
import type { AsOwner } from "../database/owner-pool.ts";

export type SharedRateLimit = {
  /** Counts one request of the key, or several. Null if they are within the limit, otherwise the seconds until the next one is allowed. */
  take(key: string, count?: number): Promise<number | null>;
};

type SharedRateLimitOptions = {
  readonly name: string;
  readonly points: number;
  readonly seconds: number;
  readonly asOwner: AsOwner;
};

/**
 * A rate limit for rare, expensive requests: each one is counted in Postgres, so that the count is exact over all gateways.
 * While Postgres is unavailable, or has no table for the counts, each gateway counts by itself.
 */
export function makeSharedRateLimit({ name, points, seconds, asOwner }: SharedRateLimitOptions): SharedRateLimit {
  const limits = { keyPrefix: name, points, duration: seconds };
  const limiter = new RateLimiterPostgres({
    ...limits,
    storeClient: { query: (query: QueryConfig) => asOwner((client) => client.query(query)) },
    storeType: "client",
    schemaName: "private",
    tableName: "rate_limits",
    tableCreated: true,
    insuranceLimiter: new RateLimiterMemory(limits),
  });
  return {
    async take(key, count = 1) {
      try {
        await limiter.consume(key, count);
        return null;
      } catch (thrown) {
        if (thrown instanceof RateLimiterRes) return Math.ceil(thrown.msBeforeNext / 1000);
        throw thrown;
      }
    },
  };
}
