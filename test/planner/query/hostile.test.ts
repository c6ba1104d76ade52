import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Intent, ResponseOptions } from "../../../planner/intent/intent.ts";
import { bindValues } from "../../../planner/plan/bind-parameters.ts";
import { buildQuery } from "../../../planner/query/build-query.ts";
import { ApiError } from "../../../runtime/errors.ts";
import { useFixture } from "../../fixture.ts";
import { propertyRuns } from "../../property-runs.ts";
import { intents, manners } from "../arbitrary.ts";
import { openFixture } from "../fixture-database.ts";

const fixture = useFixture(openFixture);

const HOSTILE = [
  `"; drop table api.works; --`,
  `'; drop table api.works; --`,
  `\\'; drop table api.works; --`,
  `\\`,
  `'`,
  `"`,
  `$1`,
  `$$; select 1; $$`,
  `/*`,
  `--`,
  `")`,
  `x" from api.closed "`,
  `text) from api.closed --`,
  `E'\\''`,
  `U&"\\0022"`,
  `\u2019 \u02bc \uff07 \ud800`,
  "★".repeat(100),
];
/** Nothing that is a word of the intent itself; and no zero byte, which is refused before anything is planned. */
const hostile = fc
  .oneof(fc.constantFrom(...HOSTILE), fc.string({ unit: "binary", maxLength: 12 }))
  .filter((text) => /[^a-z/*]/i.test(text) && !text.includes("\0"));

/** Returns the same intent with a plain text in place of each hostile one: its statement should look alike. */
function tamed<T>(request: T): T {
  return JSON.parse(JSON.stringify(request), (_key, value) => {
    if (typeof value === "object" && value !== null && value.type === "Buffer") return Buffer.from(value.data);
    return typeof value === "string" && numbers.has(value) ? `plain_${numbers.get(value)}` : value;
  });
}

/** Returns a statement without its quoted texts. */
function skeleton(text: string): string {
  return text.replace(/ E'(?:[^'\\]|''|\\.)*'|'(?:[^']|'')*'|"(?:[^"]|"")*"/gs, (quoted) =>
    quoted.startsWith('"') ? '"…"' : "'…'",
  );
}

function statement(intent: Intent, responseOptions: ResponseOptions): { text: string; values: unknown[] } | ApiError {
  try {
    const { text, parameters: slots } = buildQuery(fixture.plan(intent, { ...responseOptions, safeWrites: false }));
    return { text, values: bindValues(slots, intent) };
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
}

const numbers = new Map<string, number>();
const remembered = hostile.map((text) => {
  if (!numbers.has(text)) numbers.set(text, numbers.size);
  return text;
});
const request = fc.tuple(intents({ name: remembered, value: remembered }), manners(hostile));

describe("hostile text in any part of an intent", () => {
  test("leaves the structure of the statement unchanged", () => {
    let planned = 0;
    fc.assert(
      fc.property(request, ([intent, responseOptions]) => {
        const [ours, plain] = [statement(intent, responseOptions), statement(tamed(intent), responseOptions)];
        if (ours instanceof ApiError || plain instanceof ApiError) {
          expect(ours instanceof ApiError && plain instanceof ApiError && ours.code === plain.code).toBe(true);
          return;
        }
        planned += 1;
        expect(skeleton(ours.text)).toBe(skeleton(plain.text));
        expect(ours.values.length).toBe(plain.values.length);
      }),
      { numRuns: propertyRuns(2_000) },
    );
    expect(planned).toBeGreaterThan(propertyRuns(500));
  });

  test("is never SQL to Postgres, which refuses names and values and not the syntax", async () => {
    const codes = new Set<string>();
    for (const [intent, responseOptions] of fc.sample(request, 400)) {
      const ours = statement(intent, responseOptions);
      if (ours instanceof ApiError) continue;
      const query = buildQuery(fixture.plan(intent, { ...responseOptions, safeWrites: false }));
      await fixture.lines(query, intent).catch((error: { code?: string; message: string }) => {
        codes.add(error.code ?? error.message);
        // A value's own syntax has the same code as a statement's.
        if (/^(syntax error in tsquery|there is no escaped character)/.test(error.message)) return;
        expect(error.code, `${error.message}: ${ours.text}`).not.toBe("42601");
      });
    }
    expect(codes).toContain("42703");
    const { rows } = await fixture.owner.query("select pg_catalog.count(*)::int as rows from api.works");
    expect(rows).toEqual([{ rows: 7 }]);
  });
});
