import { existsSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { compareRestored } from "../../../bench/archives/compare-restored.ts";
import { randomSchema } from "../../../bench/archives/random-schema.ts";
import { cloneDatabase, urlOf } from "../../database.ts";
import { useFolder } from "../../fixture.ts";
import { propertyRuns, slowPropertyRuns } from "../../property-runs.ts";
import { wordsOfSql } from "../../sql-texts.ts";

/** `npm run bench -- archives` runs all on each version of Postgres. */
const RUNS = 500;
const { TEST_POSTGRES = "" } = process.env;

const folder = useFolder("random-schemas-");

test("tables, columns, types and functions of any kind, named as the words of our SQL, are restored with all rows", async () => {
  const names = wordsOfSql();
  expect(names.aliases).toEqual(expect.arrayContaining(["t", "row", "rows", "item", "statement"]));
  expect(names.words).toEqual(expect.arrayContaining(["select", "text", "count", "attname"]));
  const options = {
    createDatabase: () => cloneDatabase("empty"),
    rootUrl: urlOf("postgres", "postgres"),
    folder,
    pgDump: existsSync(join(TEST_POSTGRES, "pg_dump")) ? TEST_POSTGRES : null,
  };
  const property = fc.asyncProperty(randomSchema(names), (schema) => compareRestored(schema, options));
  // Two databases a run: a tenth of a fifth in a usual run.
  await fc.assert(property, { numRuns: Math.ceil((slowPropertyRuns(RUNS) * propertyRuns(RUNS)) / RUNS) });
});
