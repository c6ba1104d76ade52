import { expect, test } from "vitest";
import { createHostileSchema, HOSTILE_SCHEMA } from "../hostile-schema.ts";
import { propertyRuns } from "../property-runs.ts";
import { RECORDED_AREAS } from "./recorded-areas.ts";
import { replay } from "./replay.ts";

/** What Postgres has no function or operator for. */
const OTHERWISE = /recorded [^\n]*does not exist/;

/** What calls functions of the recorded schema itself, which do not qualify names, or compares values by operators that it may define. */
const BY_USERS = /\/rpc\/|[?&](select=[^&]*\bcount\b|plain=|address=)|address\.|->s=/;

/** The default path of Supabase and ours, on which Postgres's own objects come first. */
const path = `"$user", public, extensions, ${HOSTILE_SCHEMA}`;

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
  const service = await open(
    { PGRST_DB_EXTRA_SEARCH_PATH: `public,${extra},${HOSTILE_SCHEMA}`, ...settings },
    (owner) => createHostileSchema(owner, { path, fails: true }),
  );
  try {
    const { requests, differences } = await replay(service, name, { most: propertyRuns(2_000) });
    const isAllowed = (difference: string) =>
      BY_USERS.test(difference.split("\n", 1)[0]!) || OTHERWISE.test(difference);
    expect(differences.filter((difference) => !isAllowed(difference))).toEqual([]);
    expect(requests).toBeGreaterThan(30);
    expect(differences.length).toBeLessThan(requests / 10);
  } finally {
    await service.close();
  }
});
