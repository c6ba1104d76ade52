import { readFileSync } from "node:fs";
import pg from "pg";
import { expect, test } from "vitest";
import { serviceFiles } from "../repository.ts";
import { createShadows, SHADOWS } from "../shadowing.ts";
import { RECORDED_AREAS } from "./recorded-areas.ts";
import { replay } from "./replay.ts";

/** The functions of Postgres that the service calls, and those that core's GraphQL does. */
const names = serviceFiles().flatMap((file) =>
  [...readFileSync(file, "utf8").matchAll(/\bpg_catalog\.([a-z_0-9]+)\(/g)].map(([, name]) => name!),
);
const CORE_NAMES = ["json_array_elements", "json_build_array", "row_number", "sum", "avg", "min", "max", "to_tsquery"];

/** What Postgres has no function or operator for. */
const OTHERWISE = /recorded [^\n]*does not exist/;

/** What calls functions of the recorded schema itself, which do not qualify names, or compares values by operators that it may define. */
const BY_USERS = /\/rpc\/|isdistinct|[?&](select=[^&]*\bcount\b|plain=|address=)|address\.|->s=/;

const CASES = [
  ["graphql", {}],
  ["graphql", { GRAPHQL_COMPILE: "off" }],
  ["conventional", {}],
  ["table-embeds", {}],
  ["table-filters", {}],
  ["table-inserts", {}],
  ["table-updates", {}],
  ["table-upserts", {}],
  ["table-deletes", {}],
  ["table-pages", {}],
  ["table-select", {}],
  ["table-types", {}],
] as const;

test.each(CASES)("%s %j: no function and no operator of a user replaces one of Postgres", async (name, settings) => {
  const { open } = RECORDED_AREAS.find((area) => area.name === name)!;
  const extra = name.startsWith("table-") ? "tools" : "extensions";
  const service = await open({ PGRST_DB_EXTRA_SEARCH_PATH: `public,${extra},${SHADOWS}`, ...settings }, shadow);
  try {
    const { requests, differences } = await replay(service, name, { most: 1_000 });
    const isAllowed = (difference: string) =>
      BY_USERS.test(difference.split("\n", 1)[0]!) || OTHERWISE.test(difference);
    expect(differences.filter((difference) => !isAllowed(difference))).toEqual([]);
    expect(requests).toBeGreaterThan(30);
    expect(differences.length).toBeLessThan(requests / 10);
  } finally {
    await service.close();
  }
});

async function shadow(owner: pg.ClientBase): Promise<void> {
  await createShadows(owner, [...new Set([...names, ...CORE_NAMES])]);
  const { rows } = await owner.query<{ name: string }>("select current_database() as name");
  const path = `"$user", public, extensions, ${SHADOWS}`;
  await owner.query(`alter database ${pg.escapeIdentifier(rows[0]!.name)} set search_path = ${path}`);
}
