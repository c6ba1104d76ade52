import { describe, expect, test } from "vitest";
import type { AttackName } from "../../bench/hostile/attacks/attacks.ts";
import { HONEST_KINDS } from "../../bench/hostile/honest.ts";
import { type HostileResult, openHostile } from "../../bench/hostile/run/hostile.ts";
import { useFixture } from "../fixture.ts";

const SECONDS = 2;
const EACH_WAY = [...["table", "resource", "GraphQL", "realtime"].map((way) => `${way}: own row`), "respond-async 202"];

const hostile = useFixture(openHostile);

/** A busy machine may not get as far in so short a time. */
async function runUntil(
  names: readonly AttackName[],
  isEnough: (attacks: HostileResult["attacks"]) => unknown,
): Promise<HostileResult> {
  for (;;) {
    const result = await hostile.run(names, SECONDS);
    if (isEnough(result.attacks)) return result;
  }
}

describe("attacks beside honest traffic", () => {
  test("have no findings if tenants are isolated, and honest callers are served", async () => {
    const result = await runUntil(["tenants", "connections"], ({ tenants }) =>
      EACH_WAY.every((way) => tenants?.outcomes[way]),
    );
    const { quiet, hostile: attacked, attacks, misplaced, ending } = result;
    for (const kind of HONEST_KINDS) {
      for (const { count, p50, p99 } of [quiet[kind], attacked[kind]]) {
        expect(count).toBeGreaterThan(0);
        expect(p50).toBeGreaterThan(0);
        expect(p50).toBeLessThan(Number.POSITIVE_INFINITY);
        expect(p99).toBeGreaterThanOrEqual(p50);
      }
    }
    expect(attacks.tenants!.faults).toEqual([]);
    expect(attacks.connections!.outcomes.held).toBeGreaterThan(0);
    expect(misplaced).toBe(0);
    expect(ending).toBeNull();
    expect(result.peak).toBeGreaterThan(50);
  });

  test("find the rows of another tenant by each interface, and those that were written for another one", async () => {
    await hostile.scratch.execute(`
      alter policy own on public.documents using (true) with check (true);
      create or replace function public.write_document(body text) returns void language sql
        as $$ insert into public.documents (body, tenant) values (body, 0) $$`);
    const all = ["GraphQL", "realtime", "resource", "table"].map((way) => `rows of another tenant by ${way}`);
    const { attacks, misplaced } = await runUntil(["tenants"], ({ tenants }) => tenants?.faults.length === all.length);
    expect(attacks.tenants!.faults.toSorted()).toEqual(all);
    expect(misplaced).toBeGreaterThan(0);
  });
});
