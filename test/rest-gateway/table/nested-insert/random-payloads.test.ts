import { readFileSync } from "node:fs";
import fc from "fast-check";
import type pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { cloneDatabase } from "../../../database.ts";
import { connect } from "../../../db/callers.ts";
import { propertyRuns } from "../../../property-runs.ts";
import { serve } from "../../../serve.ts";
import { type Client, openClient } from "../client.ts";
import { generatePayload, type Payload, type PayloadRow, rowsWithin, toJson } from "./payloads.ts";
import { CLAIMS, findFaults, insertOneByOne, ROW_DROPPED, stateOf } from "./reference.ts";

const textOf = (name: string) => readFileSync(new URL(name, import.meta.url), "utf8");
const SEED = textOf("seed.sql");

type ShopDatabase = { readonly owner: pg.Client; readonly caller: pg.Client };

const opened = new AsyncDisposableStack();
let served: ShopDatabase;
let reference: ShopDatabase;
let client: Client;

beforeAll(async () => {
  const open = async () => {
    const database = await cloneDatabase("empty");
    opened.defer(() => database.drop());
    const owner = await connect(database.ownerUrl);
    opened.defer(() => owner.end());
    await owner.query(textOf("shop.sql"));
    const caller = await connect(database.url);
    opened.defer(() => caller.end());
    return { database, owner, caller };
  };
  const first = await open();
  served = first;
  reference = await open();
  const service = await serve(first.database);
  opened.defer(() => service.stop());
  client = openClient(service.url, { as: CLAIMS });
  opened.defer(async () => client.close());
});
afterAll(() => opened.disposeAsync());

const empty = () => Promise.all([served.owner.query(SEED), reference.owner.query(SEED)]);

type Answer = { readonly error: string | null; readonly body: unknown };

async function send({ table, rows, isArray, missingAsDefault }: Payload, returned: string): Promise<Answer> {
  const json = rows.map(toJson);
  const select = returned === "representation" ? `?select=${selectOf(rows)}` : "";
  const Prefer = ["nested=insert", `return=${returned}`, ...(missingAsDefault ? ["missing=default"] : [])].join();
  const { status, body } = await client.ask(`/${table}${select}`, {
    method: "POST",
    headers: { Prefer },
    body: isArray ? json : json[0]!,
  });
  return status === 201 ? { error: null, body } : { error: String(body.code), body };
}

/** The labels of the rows and of all that a payload has below them. */
function selectOf(rows: readonly PayloadRow[]): string {
  const labels = rows.some(({ values }) => "label" in values) ? ["label"] : [];
  const relations = new Map(rows.flatMap(({ related }) => related.map(({ relation }) => [relation.embed, relation])));
  const embeds = [...relations.keys()].map((embed) => {
    const below = rows.flatMap(({ related }) => related.filter(({ relation }) => relation.embed === embed));
    return `"${embed}":${embed}(${selectOf(below.flatMap((each) => each.rows ?? []))})`;
  });
  return [...labels, ...embeds].join();
}

type ReturnedRow = Readonly<Record<string, unknown>>;

/** The rows of a response contain those of the payload; existing rows may be among them. Rows without labels count as one. */
function expectReturned(rows: readonly PayloadRow[], returned: readonly ReturnedRow[]): void {
  for (const { values, related } of rows) {
    const found = "label" in values ? returned.filter(({ label }) => label === values.label) : returned;
    expect(found.length, JSON.stringify(values)).toBeGreaterThan(0);
    for (const { relation, rows: below } of related) {
      if (below === null || below.length === 0) continue;
      const values = found.flatMap((row) => row[relation.embed] as ReturnedRow | readonly ReturnedRow[]);
      expectReturned(below, values);
    }
  }
}

describe("a nested insert", () => {
  test("writes the rows of plain inserts one after the other, or fails with the SQLSTATE of one of them", async () => {
    const outcomes = { written: 0, refused: 0, rows: 0 };
    const property = fc.asyncProperty(
      fc.gen(),
      fc.constantFrom("minimal", "headers-only", "representation"),
      async (g, returned) => {
        const payload = generatePayload(g);
        await empty();
        const before = await stateOf(served.owner);
        const error = await insertOneByOne(reference.caller, payload.rows);
        const answer = await send(payload, returned);
        const context = JSON.stringify({ payload: payload.rows.map(toJson), table: payload.table, answer });
        if (error === null) {
          expect(answer.error, context).toBeNull();
          outcomes.written += 1;
          outcomes.rows += rowsWithin(payload.rows).length;
        } else {
          expect(answer.error, context).not.toBeNull();
          // One of several faults is reported: rows of one table are inserted together.
          if (error !== ROW_DROPPED && answer.error !== error) {
            const faults = await findFaults(reference.caller, payload.rows);
            if (!faults.has(ROW_DROPPED)) expect([...faults], context).toContain(answer.error);
          }
          outcomes.refused += 1;
        }
        expect(await stateOf(served.owner), context).toEqual(error === null ? await stateOf(reference.owner) : before);
        if (error === null && returned === "representation") {
          expectReturned(payload.rows, answer.body as never);
        }
      },
    );
    await fc.assert(property, { numRuns: propertyRuns(1_000), endOnFailure: true });
    expect(outcomes.written).toBeGreaterThan(outcomes.refused / 2);
    expect(outcomes.refused).toBeGreaterThan(0);
    expect(outcomes.rows).toBeGreaterThan(2 * outcomes.written);
  });

  test("accepts a column that is null in one row, and has the related row in another", async () => {
    await empty();
    const body = [
      { label: "alone", boss_id: null },
      { label: "under", boss_id: { label: "boss" } },
    ];
    for (const rows of [body, body.toReversed()]) {
      await empty();
      const { status } = await client.ask("/people", {
        method: "POST",
        headers: { Prefer: "nested=insert" },
        body: rows,
      });
      expect(status).toBe(201);
      const { rows: found } = await served.owner.query(
        "select p.label, b.label as boss from public.people p left join public.people b on b.id = p.boss_id where p.id >= 100 order by 1",
      );
      expect(found).toEqual([
        { label: "alone", boss: null },
        { label: "boss", boss: null },
        { label: "under", boss: "boss" },
      ]);
    }
  });
});
