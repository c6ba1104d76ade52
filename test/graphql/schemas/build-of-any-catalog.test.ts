import fc from "fast-check";
import { introspectionFromSchema, isObjectType, validateSchema } from "grafast/graphql";
import { beforeAll, expect, test } from "vitest";
import { buildServableSchema } from "../../../graphql/schemas/resilient-build.ts";
import { useFixture } from "../../fixture.ts";
import { openPreset } from "../../plugins/open-preset.ts";
import { propertyRuns } from "../../property-runs.ts";
import { randomCatalogue } from "./random-catalogue.ts";

const opened = useFixture(() => openPreset({ template: "empty", sql: "create schema extensions" }));
beforeAll(() => opened.owner.query("set client_min_messages = error"));

test("a schema can be built for every catalog, without its invalid objects", async () => {
  await fc.assert(
    fc.asyncProperty(randomCatalogue, async (statements) => {
      const { owner, engine, preset } = opened;
      // Some cannot be run after the others: a table that refers to one that is not there.
      for (const statement of statements) await owner.query(statement).catch(() => {});
      engine.forgetStatements();
      const { schema } = await buildServableSchema(preset, new AbortController().signal);
      expect(validateSchema(schema)).toEqual([]);
      expect(introspectionFromSchema(schema)).toHaveProperty("__schema");
      expect(schema.getQueryType()!.getFields()).toMatchObject({ control: {}, controls: {} });
      const control = schema.getType("Control");
      expect(isObjectType(control) && control.getFields()).toMatchObject({ id: {}, note: {} });
    }),
    { numRuns: propertyRuns(40) },
  );
});
