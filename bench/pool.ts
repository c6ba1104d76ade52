// Benchmarks the connection pools: the effect of many clients, slow statements and locked tables on callers with short requests.

import type { Bench } from "./measuring/kind.ts";
import { SCHEMA } from "./measuring/schema.ts";
import { startScratch } from "./measuring/scratch.ts";
import { BRIEF_PER_SECOND, compareBesideSlow } from "./pool/beside-slow.ts";
import { compareDepths } from "./pool/depths.ts";
import { watchDisturbances } from "./pool/disturbances.ts";

const NAP = `
  create function nap(seconds float8) returns float8 stable language plpgsql
    as $$ begin perform pg_sleep(seconds); return seconds; end $$;
  grant select on items to anon;
`;

export const bench: Bench = async (options) => {
  const { rounds, seconds, print } = options;
  print("pool: /rest/v1, row-level security on; everything on one machine");
  await using scratch = await startScratch(SCHEMA + NAP);
  print(`\n  reads in flight on one connection, ${rounds} rounds of ${seconds} s in turn\n`);
  const depths = await compareDepths(scratch, options);
  print(`  ${BRIEF_PER_SECOND} short reads per second, alone and beside slow ones, ${rounds} rounds in turn`);
  const besideSlow = await compareBesideSlow(scratch, options);
  const disturbances = await watchDisturbances(scratch, options);
  return { depths, besideSlow, disturbances };
};
