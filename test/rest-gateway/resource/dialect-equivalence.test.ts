import fc from "fast-check";
import { beforeAll, expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { propertyRuns } from "../../property-runs.ts";
import { openResources } from "./open-resources.ts";

const resources = useFixture(() => openResources({ settings: { REST_REQUIRE_APIKEY: "false" } }));
beforeAll(async () => {
  const users = [await resources.addUser("Ada"), await resources.addUser("Eve")];
  await resources.owner.query(
    `insert into articles (title, content, status, tags, author_id, summary)
       select 'Title ' || n % 7, 'Content', (array['DRAFT', 'PUBLISHED', 'ARCHIVED'])[n % 3 + 1]::article_status,
         array['tag' || n % 4], (array[$1, $2])[n % 2 + 1]::bigint, case when n % 5 = 0 then null else 'Summary ' || n % 5 end
       from generate_series(1, 60) as n`,
    users,
  );
});

const FILTERS = {
  id: fc.integer({ min: 0, max: 61 }).map(String),
  title: fc.integer({ min: 0, max: 7 }).map((n) => `Title ${n}`),
  status: fc.constantFrom("DRAFT", "PUBLISHED", "ARCHIVED"),
  author_id: fc.constantFrom("1", "2", "3"),
  summary: fc.integer({ min: 0, max: 5 }).map((n) => `Summary ${n}`),
} as const;
const NAMES = ["id", "title", "status", "author_id", "summary", "tags", "created_at"] as const;

const question = fc.record({
  filters: fc.record(FILTERS, { requiredKeys: [] }),
  fields: fc.uniqueArray(fc.constantFrom(...NAMES), { minLength: 1 }),
  sort: fc.uniqueArray(
    fc.tuple(fc.constantFrom("id", "title", "status", "author_id", "summary"), fc.constantFrom("asc", "desc")),
    {
      selector: ([name]) => name,
      maxLength: 3,
    },
  ),
  skip: fc.nat(30),
  limit: fc.integer({ min: 1, max: 20 }),
});

test("both dialects return the same rows for the same query", async () => {
  await fc.assert(
    fc.asyncProperty(question, async ({ filters, fields, sort, skip, limit }) => {
      const direction = sort.at(-1)?.[1] ?? "asc";
      const complete = sort.some(([name]) => name === "id") ? sort : [...sort, ["id", direction]];
      const table = new URLSearchParams({
        select: fields.join(),
        order: complete.map(([name, toward]) => `${name}.${toward}`).join(),
        offset: String(skip),
        limit: String(limit),
        ...Object.fromEntries(Object.entries(filters).map(([name, value]) => [name, `eq.${value}`])),
      });
      const resource = new URLSearchParams({
        fields: fields.join(),
        skip: String(skip),
        limit: String(limit),
        ...(sort.length > 0 && { sort: sort.map(([name, toward]) => `${name}:${toward}`).join() }),
        ...filters,
      });
      const [one, other] = await Promise.all([
        resources.ask(`/rest/v1/articles?${table}`, { headers: { Prefer: "count=exact" } }),
        resources.ask(`/api/v1/articles?${resource}`),
      ]);
      expect(other.body.data).toEqual(one.status === 416 ? [] : one.body);
      const total = one.headers.get("content-range")?.split("/")[1];
      expect(String(other.body.pagination.total)).toBe(total);
    }),
    { numRuns: propertyRuns(200) },
  );
});
