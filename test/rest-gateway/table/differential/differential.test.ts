import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { TestDatabase } from "../../../database.ts";
import { useFixture } from "../../../fixture.ts";
import { isPostgrestInstalled, startPostgrest } from "../../../postgrest.ts";
import { SECRET } from "../../../secret.ts";
import { serve } from "../../../serve.ts";
import { type Answer, answerTo } from "./answer.ts";
import type { Area, Case } from "./case.ts";
import { AREAS } from "./cases.ts";
import { comparedPart, expectationOf, outcomeOf } from "./compare.ts";
import { openFixture } from "./fixture.ts";
import { INTENDED, type IntendedDifference } from "./intended-differences.ts";

/** Both understand these. Every transaction is rolled back, unless a case prefers otherwise. */
const SETTINGS = {
  PGRST_DB_CONFIG: "false",
  PGRST_DB_SCHEMAS: "api,other",
  PGRST_DB_ANON_ROLE: "anon",
  PGRST_DB_EXTRA_SEARCH_PATH: "public,tools",
  PGRST_DB_AGGREGATES_ENABLED: "true",
  PGRST_DB_PLAN_ENABLED: "true",
  PGRST_DB_TX_END: "rollback-allow-override",
  PGRST_JWT_SECRET: SECRET,
};
/** These turn off additions of ours to PostgREST, which other tests cover. */
const OWN_SETTINGS = { REST_REQUIRE_APIKEY: "false", REST_SAFE_WRITES: "false" };

type Program = { readonly url: string; stop(): Promise<void> };
type StartProgram = (fixture: TestDatabase, settings: Readonly<Record<string, string>>) => Promise<Program>;

/** One of the two programs, with a database of its own. */
type Side = {
  start(settings: Area["settings"]): Promise<void>;
  ask(request: Case): Promise<Answer>;
  stop(): Promise<void>;
  close(): Promise<void>;
};

async function openSide(startProgram: StartProgram, path: string): Promise<Side> {
  const fixture = await openFixture();
  const owner = new pg.Client({ connectionString: fixture.ownerUrl });
  await owner.connect();
  let program: Program;
  return {
    start: async (settings) => {
      program = await startProgram(fixture, { ...SETTINGS, ...settings });
    },
    ask: async (request) => {
      // Sequences take no part in a rollback: each write finds them as they were.
      if (!["GET", "HEAD", "OPTIONS"].includes(request.method)) await owner.query("select private.rewind()");
      return answerTo(request, program.url + path);
    },
    stop: () => program.stop(),
    close: async () => {
      await owner.end();
      await fixture.drop();
    },
  };
}

const toCompare = AREAS.flatMap(({ groups }) => groups.flatMap(({ cases }) => cases)).length;

describe.skipIf(!isPostgrestInstalled)("beside PostgREST 12.0.2", () => {
  const shown = new Set<IntendedDifference>();
  let compared = 0;

  const postgrest = useFixture(() => openSide(({ url }, settings) => startPostgrest(url, settings), ""));
  const service = useFixture(() =>
    openSide((fixture, settings) => serve(fixture, { ...settings, ...OWN_SETTINGS }), "/rest/v1"),
  );

  describe.each<Area>(AREAS)("$name", ({ settings, groups }) => {
    beforeAll(async () => {
      await Promise.all([postgrest.start(settings), service.start(settings)]);
    });
    afterAll(async () => {
      await Promise.all([service.stop(), postgrest.stop()]);
    });

    describe.each(groups)("$name", ({ cases }) => {
      test.each(cases)("$name", async (request) => {
        compared += 1;
        const [theirs, ours] = await Promise.all([postgrest.ask(request), service.ask(request)]);
        if (request.outcome !== "any") expect(outcomeOf(theirs), "PostgREST itself").toBe(request.outcome);

        if (request.differs) {
          shown.add(request.differs.because);
          expect(comparedPart(ours, request)).not.toEqual(comparedPart(theirs, request));
          expect(ours, report(request, theirs, ours)).toMatchObject(request.differs.ours);
          return;
        }
        const expected = expectationOf(request, theirs, ours);
        expect(comparedPart(ours, request), report(request, theirs, ours)).toEqual(
          comparedPart(expected.answer, request),
        );
        for (const difference of expected.differences) shown.add(difference);
      });
    });
  });

  test("every intended difference still exists", ({ skip }) => {
    if (compared < toCompare) skip("only some of the cases ran");
    expect(Object.keys(INTENDED).filter((name) => !shown.has(name as IntendedDifference))).toEqual([]);
  });
});

function report({ method, path, headers, body }: Case, theirs: Answer, ours: Answer): string {
  const request = `${method} ${path} ${JSON.stringify(headers)}${body === null ? "" : ` ${body}`}`;
  return `${request}\nPostgREST ${JSON.stringify(theirs)}\nours      ${JSON.stringify(ours)}\n`;
}
