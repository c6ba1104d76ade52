import type pg from "pg";
import { describe, expect, test } from "vitest";
import type { ServiceOptions } from "../../../service/wiring/running-service.ts";
import type { Service } from "../../../service/wiring/service.ts";
import { cloneDatabase } from "../../database.ts";
import { connect, SEED } from "../../db/callers.ts";
import { tokenFor } from "../../graphql.ts";
import { slowPropertyRuns } from "../../property-runs.ts";
import { serve } from "../../serve.ts";
import { BY_GRAFAST } from "../grafast/grafast-stages.ts";
import { compareMutations, operationOutcomes } from "./oracle.ts";
import { CALLERS_OF_TABLES, stateOf, TABLES } from "./written-tables.ts";

const WITH_RELATED_ROWS = `${TABLES}
  comment on constraint items_shop_id_fkey on public.items is '@nestedInsert';
  comment on table public.parts is '@nestedInsert';
  comment on table public.logs is '@nestedInsert forward';
  comment on constraint owned_shop_id_fkey on public.owned is '@nestedInsert';
`;

type ServedDatabase = { readonly owner: pg.Client; readonly service: Service };

const CALLERS = [
  ["anon", null],
  ["a user", tokenFor(1)],
  ["admin", tokenFor(3, { role: "admin" })],
] as const;

describe("mutations have the same answers and effects, compiled and not", () => {
  test.each([
    ["the contract's schema", "content", SEED, CALLERS, 350, 0.5],
    ["tables", "empty", TABLES, CALLERS_OF_TABLES, 600, 0.4],
    ["tables with inputs of related rows", "empty", WITH_RELATED_ROWS, CALLERS_OF_TABLES, 600, 0.4],
  ] as const)("over %s", async (_title, template, sql, callers, runs, share) => {
    await using opened = new AsyncDisposableStack();
    const open = async (options?: Partial<ServiceOptions>): Promise<ServedDatabase> => {
      const database = await cloneDatabase(template);
      opened.defer(() => database.drop());
      const owner = await connect(database.ownerUrl);
      opened.defer(() => owner.end());
      await owner.query(sql);
      const service = await serve(database, { ADMIN_PORT: "0" }, options);
      opened.defer(() => service.stop());
      return { owner, service };
    };
    const compiling = await open();
    const plain = await open(BY_GRAFAST);
    const owners = [compiling.owner, plain.owner];
    const services = { compiling: compiling.service, plain: plain.service };
    let next = 1_000;
    for (const [, token] of callers) {
      await compareMutations(services, token, slowPropertyRuns(runs), async () => {
        next += 10;
        await Promise.all(owners.map((owner) => alignSequences(owner, next)));
      });
      expect(await stateOf(compiling.owner)).toEqual(await stateOf(plain.owner));
    }
    const { compiled = 0, introspection: _, refused = 0, ...others } = await operationOutcomes(compiling.service);
    const all = Object.values(others).reduce((sum, count) => sum + count, compiled);
    expect((compiled - refused) / all).toBeGreaterThanOrEqual(share);
  });
});

/** Sets all sequences to one number: a failed insert takes a number too, and another one when Grafast repeats it. */
async function alignSequences(owner: pg.Client, next: number): Promise<void> {
  const set =
    "select setval(format('%I.%I', schemaname, sequencename), $1) from pg_sequences where schemaname = 'public'";
  await owner.query(set, [next]);
}
