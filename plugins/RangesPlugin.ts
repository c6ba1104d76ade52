import type {} from "postgraphile";
import { type SQL, sql } from "postgraphile/@dataplan/pg/pg-sql2";
import { castEach } from "./list-cast.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      RangesPlugin: true;
    }
  }
}

/** Core asks for the bounds of ranges of times and days one by one, and shows null as a range that has none. */
export const RangesPlugin: GraphileConfig.Plugin = {
  name: "RangesPlugin",
  description: "A range that is null is null",
  gather: {
    hooks: {
      pgCodecs_PgCodec(_info, { pgCodec }) {
        const { rangeOfCodec, domainOfCodec, castFromPg } = pgCodec;
        if (!rangeOfCodec || domainOfCodec || !castFromPg) return;
        const cast = (range: SQL) => sql`(case when ${range} is null then null else ${castFromPg(range)} end)`;
        pgCodec.castFromPg = cast;
        pgCodec.listCastFromPg = castEach(cast);
      },
    },
  },
};
