import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createHostileSchema, HOSTILE_SCHEMA } from "../hostile-schema.ts";
import { propertyRuns } from "../property-runs.ts";
import { RECORDED_AREAS, type RecordedService } from "./recorded-areas.ts";
import { replay } from "./replay.ts";

/** What Postgres has no function or operator for. */
const OTHERWISE = /recorded [^\n]*does not exist/;

/** What calls functions of the recorded schema itself, which do not qualify names, or compares values by operators that it may define. */
const BY_USERS = /\/rpc\/|[?&](select=[^&]*\bcount\b|plain=|address=)|address\.|->s=/;

/** The default path of Supabase and ours, on which Postgres's own objects come first. */
const path = `"$user", public, extensions, ${HOSTILE_SCHEMA}`;

const TABLE_AREAS = "embeds filters inserts updates upserts deletes pages select types".split(" ");

/** One service serves all areas of tables. */
const SERVICES = [
  { settings: {}, areas: ["graphql"] },
  { settings: { GRAPHQL_COMPILE: "off" }, areas: ["graphql"] },
  { settings: {}, areas: ["conventional"] },
  { settings: {}, areas: TABLE_AREAS.map((name) => `table-${name}`) },
] as const;

describe.each(SERVICES)("with %j", ({ settings, areas }) => {
  let service: RecordedService;
  beforeAll(async () => {
    const { open, isPlainTables } = RECORDED_AREAS.find(({ name }) => name === areas[0])!;
    const extra = isPlainTables ? "tools" : "extensions";
    service = await open({ PGRST_DB_EXTRA_SEARCH_PATH: `public,${extra},${HOSTILE_SCHEMA}`, ...settings }, (owner) =>
      createHostileSchema(owner, { path, fails: true }),
    );
  });
  afterAll(() => service.close());

  test.each(areas)("no function and no operator of a user replaces one of Postgres: %s", async (name) => {
    const { requests, differences } = await replay(service, name, { most: propertyRuns(2_000) });
    const isAllowed = (difference: string) =>
      BY_USERS.test(difference.split("\n", 1)[0]!) || OTHERWISE.test(difference);
    expect(differences.filter((difference) => !isAllowed(difference))).toEqual([]);
    expect(requests).toBeGreaterThan(30);
    expect(differences.length).toBeLessThan(requests / 10);
  });
});
