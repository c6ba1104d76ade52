import { describe, expect, test } from "vitest";
import { useFixture } from "../fixture.ts";
import { shareOf } from "../property-runs.ts";
import { crawlFunctions } from "./crawl-functions.ts";
import { crawlGraphQL, type GraphQLShapes, readShapes } from "./crawl-graphql.ts";
import { crawlRealtime } from "./crawl-realtime.ts";
import { crawlResourceInterface } from "./crawl-resource-interface.ts";
import { crawlTableInterface } from "./crawl-table-interface.ts";
import { crawlWrites, disableTriggers } from "./crawl-writes.ts";
import type { Table } from "./described.ts";
import { unexpected } from "./expected-differences.ts";
import { Findings } from "./findings.ts";
import type { PublicSchema } from "./public-schemas.ts";
import { serveSchema } from "./served.ts";

/** Tables that are compared at the same time. */
const AT_ONCE = 4;
/** A share of the tables is compared if a schema has more. */
const MANY_TABLES = 40;

/** The tests of one schema: each interface returns the same as SQL. */
export function compareWithSql(schema: PublicSchema): void {
  describe(schema.title, () => {
    const served = useFixture(() => serveSchema(schema));
    let shapes: Promise<GraphQLShapes> | null = null;
    /** Reads the shapes once, since a large schema takes long to read, and the tests change only rows and triggers. */
    const readShapesOnce = (findings = new Findings()) => {
      shapes ??= readShapes(served, findings);
      return shapes;
    };

    test("has a row in each table", () => {
      expect(served.tables.length).toBeGreaterThan(5);
      expect(served.empty).toEqual(schema.empty ?? []);
    });

    test("returns the same at /rest/v1 as SQL: rows, filters, orders, embedded rows", async () => {
      const findings = new Findings();
      await forEachTable((table) => crawlTableInterface(served, table, findings));
      expectNoDifference(findings, "table");
    });

    test("returns the same at /api/v1 as SQL: rows, filters, orders, links", async () => {
      const findings = new Findings();
      await forEachTable((table) => crawlResourceInterface(served, table, findings));
      expectNoDifference(findings, "resource");
    });

    test("returns the same over GraphQL as SQL: rows, relations, filters", async () => {
      const findings = new Findings();
      const read = await readShapesOnce(findings);
      await forEachTable((table) => crawlGraphQL(served, read, table, findings));
      expectNoDifference(findings, "graphql");
    });

    test("sends each inserted and updated row on channels", async () => {
      const findings = new Findings();
      await crawlRealtime(served, findings);
      expectNoDifference(findings, "realtime");
    });

    test("is unchanged when rows that were read are written back", async () => {
      const findings = new Findings();
      const read = await readShapesOnce();
      await disableTriggers(served);
      await forEachTable((table) => crawlWrites(served, read, table, findings));
      expect(unexpected(findings.differences)).toEqual([]);
      const { table, resource, graphql } = findings.counts;
      expect(Math.min(table, resource, graphql)).toBeGreaterThan(crawledTables().length / 2);
    });

    // This is the last test: the changes of functions over GraphQL stay.
    test("has functions that return the same over HTTP as in SQL", async () => {
      const findings = new Findings();
      await crawlFunctions(served, await readShapesOnce(), findings);
      expect(unexpected(findings.differences)).toEqual([]);
    });

    function crawledTables(): readonly Table[] {
      return served.tables.length > MANY_TABLES ? shareOf(served.tables) : served.tables;
    }

    async function forEachTable(crawl: (table: Table) => Promise<void>): Promise<void> {
      const left = [...crawledTables()];
      const work = async () => {
        for (let table = left.shift(); table; table = left.shift()) await crawl(table);
      };
      await Promise.all(Array.from({ length: AT_ONCE }, work));
    }

    function expectNoDifference(findings: Findings, where: keyof Findings["counts"]): void {
      expect(unexpected(findings.differences)).toEqual([]);
      expect(findings.counts[where]).toBeGreaterThanOrEqual(crawledTables().length);
    }
  });
}
