import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { COMPARED_AREAS } from "../compare/areas.ts";
import { compareResponses } from "../compare/compare-responses.ts";
import type { ComparedService } from "../compare/compared-databases.ts";
import { openComparedService } from "../compare/open-compared-service.ts";
import { createHostileSchema, HOSTILE_SCHEMA } from "../hostile-schema.ts";
import { atMost, slowPropertyRuns } from "../property-runs.ts";

/** Requests that use functions or operators which Postgres does not have. */
const NOT_OF_POSTGRES = /^- [^\n]*does not exist/m;

/** Requests that call functions of the fixture, which do not qualify names, or compare values by operators that it may define. */
const BY_USERS = /\/rpc\/|[?&](select=[^&]*\bcount\b|plain=|address=)|address\.|->s=/;

/** The catalogue of all schemas has that of the fixture. */
const OF_ALL_SCHEMAS = /^GET \/admin\/v1\/catalog /;

/** The default path of Supabase and ours, on which Postgres's own objects come first. */
const PATH = `"$user", public, extensions, ${HOSTILE_SCHEMA}`;

const TABLE_AREAS = "embeds filters inserts updates upserts deletes pages select types".split(" ");

/** One service serves all areas of tables. */
const SERVICES = [
  { database: "content", settings: {}, areas: ["graphql"] },
  { database: "content", settings: {}, areas: ["conventional"] },
  { database: "tables", settings: {}, areas: TABLE_AREAS.map((name) => `table-${name}`) },
] as const;

describe.each(SERVICES)("with $settings on $database, $areas.0", ({ database, settings, areas }) => {
  let usual: ComparedService;
  let shadowed: ComparedService;
  beforeAll(async () => {
    const path = `public,${database === "tables" ? "tools" : "extensions"}`;
    usual = await openComparedService(database, { PGRST_DB_EXTRA_SEARCH_PATH: path, ...settings });
    shadowed = await openComparedService(
      database,
      { PGRST_DB_EXTRA_SEARCH_PATH: `${path},${HOSTILE_SCHEMA}`, ...settings },
      (owner) => createHostileSchema(owner, { path: PATH, fails: true }),
    );
  });
  afterAll(async () => {
    await usual.close();
    await shadowed.close();
  });

  test.each(areas)("no function and no operator of a user replaces one of Postgres: %s", async (name) => {
    const { requests } = COMPARED_AREAS.find((area) => area.name === name)!;
    const sent = atMost(slowPropertyRuns(500), await requests(usual.url));
    const differences = await compareResponses(usual, shadowed, sent);
    const isAllowed = (difference: string) =>
      BY_USERS.test(difference.split("\n", 1)[0]!) ||
      OF_ALL_SCHEMAS.test(difference) ||
      NOT_OF_POSTGRES.test(difference);
    expect(differences.filter((difference) => !isAllowed(difference))).toEqual([]);
    expect(sent.length).toBeGreaterThan(30);
    expect(differences.length).toBeLessThan(sent.length / 10);
  });
});
