import { describe, expect, test } from "vitest";
import { useDatabase } from "../../database.ts";
import { SEED } from "../../db/callers.ts";
import { useFixture } from "../../fixture.ts";
import { tokenFor } from "../../graphql.ts";
import { slowPropertyRuns } from "../../property-runs.ts";
import { answerOf, type Comparison, compareAnswers, compiledShare, operationOutcomes, servePair } from "./oracle.ts";

const ROWS = `
  insert into public.articles (title, content, author_id, tags, status, created_at, updated_at)
    select 'Title ' || n || ' "quoted" \\ ünï', repeat(chr(9) || 'text ', n), 1 + n % 3, array['garden', 'tag' || n % 3],
      (array['DRAFT', 'PUBLISHED', 'ARCHIVED'])[1 + n % 3]::article_status,
      timestamptz '2026-01-01 00:00:00.1+02' + (n / 2) * interval '1 day 1 second 1 microsecond',
      case when n % 2 = 0 then now() end
    from generate_series(1, 30) as n;
  insert into public.comments (article_id, author_id, content)
    select 3 + n % 10, 1 + n % 3, 'Yes ' || n from generate_series(1, 60) as n;`;

const database = useDatabase({ sql: SEED + ROWS });
const services = useFixture(() => servePair(database));

const CALLERS: readonly (readonly [role: string, token: string | null])[] = [
  ["anon", null],
  ["authenticated", tokenFor(1)],
  ["admin", tokenFor(3, { role: "admin" })],
  ["service_role", tokenFor(3, { role: "service_role" })],
];

const comparisons: Comparison[] = [];

describe("the service's own schema", () => {
  test.each(CALLERS)("has the same answers compiled and not, as %s", async (_role, token) => {
    const compared = await compareAnswers(services, token, slowPropertyRuns(800));
    comparisons.push(compared);
    expect(compared.operations).toBeGreaterThan(compared.withErrors);
  });

  test("is compiled for at least 95 % of these operations", async () => {
    expect(comparisons).toHaveLength(CALLERS.length);
    expect(await compiledShare(services.compiling, comparisons)).toBeGreaterThanOrEqual(0.95);
    expect((await operationOutcomes(services.plain)).compiled).toBeUndefined();
  });

  test("compiles nested lists whose limits allow more than ten million rows", async () => {
    const nested = (limit: number) => ({
      query: `query ($limit: Int) { user(id: 1) { articles(limit: $limit) { author { articles(limit: $limit) { author { articles(limit: $limit) { id } } } } } } }`,
      variables: { limit },
    });
    const few = await answerOf(services.compiling, nested(20), null);
    const { compiled: before = 0 } = await operationOutcomes(services.compiling);
    const many = await answerOf(services.compiling, nested(1000), null);
    expect(await operationOutcomes(services.compiling)).toMatchObject({ compiled: before + 1 });
    expect(many).toEqual(few);
    expect(many).toEqual(await answerOf(services.plain, nested(1000), null));
    expect(JSON.parse(few.data!).user.articles.length).toBeGreaterThan(0);
  });
});
