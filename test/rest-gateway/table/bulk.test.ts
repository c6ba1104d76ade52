import { beforeEach, describe, expect, test } from "vitest";
import { useClient, useDatabase } from "../../database.ts";
import { useFixture } from "../../fixture.ts";
import { propertyRuns } from "../../property-runs.ts";
import { openClient, tokenOf } from "./client.ts";
import { serveApart } from "./serving-process.ts";

/** The full size, 100,000, is tested with all runs of property tests. */
const ROWS = propertyRuns(100_000) === 100_000 ? 100_000 : 40_000;
const rows = Array.from({ length: ROWS }, (_, n) => ({
  id: n,
  name: `name "${n}"`,
  note: n % 2 ? null : "x".repeat(30),
}));
const JSON_BODY = JSON.stringify(rows);
const CSV_BODY = [
  "id,name,note",
  ...rows.map(({ id, name, note }) => `${id},"${name.replaceAll('"', '""')}",${note ?? "NULL"}`),
].join("\n");
const BODIES = [
  ["JSON", "application/json", JSON_BODY],
  ["CSV", "text/csv", CSV_BODY],
] as const;

const database = useDatabase({
  template: "empty",
  sql: `
    create table public.parcels (id int primary key, name text not null, note text, sent_by text default current_user);
    grant all on public.parcels to authenticated`,
});
const owner = useClient(database.ownerUrl);
const serving = useFixture(() => serveApart(database));
const client = useFixture(() => openClient(serving.url, { as: { role: "authenticated" } }));
beforeEach(async () => {
  await owner.query("truncate public.parcels");
});

const insert = (body: string, type: string, prefer: string) =>
  client.ask("/parcels", { method: "POST", body, headers: { "Content-Type": type, Prefer: prefer } });

describe("many thousand rows in one request", () => {
  test.each(BODIES)("are inserted, as %s", async (_name, type, body) => {
    const { status, text, headers } = await insert(body, type, "return=minimal, count=exact");
    expect([status, text, headers["content-range"]]).toEqual([201, "", `*/${ROWS}`]);
    const { rows: kept } = await owner.query(
      `select count(*)::int, count(note)::int as notes, min(sent_by) as by, max(name) filter (where id = ${ROWS - 1}) as last from public.parcels`,
    );
    expect(kept).toEqual([{ count: ROWS, notes: ROWS / 2, by: "authenticated", last: `name "${ROWS - 1}"` }]);
  });

  test.each(BODIES)("are returned as they were inserted, as %s", async (_name, type, body) => {
    const answer = await insert(body, type, "return=representation");
    expect([answer.status, answer.body.length]).toEqual([201, ROWS]);
    expect(answer.body.at(-1)).toEqual({ ...rows.at(-1), sent_by: "authenticated" });
  });

  test("are all refused if one of them is invalid", async () => {
    const [first, ...others] = rows;
    const { status, body } = await insert(
      JSON.stringify([...others, first, first]),
      "application/json",
      "return=minimal",
    );
    expect([status, body.code]).toEqual([409, "23505"]);
    expect((await owner.query("select from public.parcels")).rowCount).toBe(0);
  });

  test("leave no memory in use: the service does not grow with each request", async () => {
    const sendAll = async () => {
      for (const [, type, body] of BODIES) {
        await owner.query("truncate public.parcels");
        expect((await insert(body, type, "return=representation")).status).toBe(201);
      }
    };
    for (let time = 0; time < 3; time++) await sendAll();
    const before = await serving.peak();
    for (let time = 0; time < 3; time++) await sendAll();
    // Bodies and answers of six with 100,000 rows are 90 MiB, their rows as values several times that.
    expect((await serving.peak()) - before).toBeLessThan(ROWS * 0.0008);
  });
});

describe("a body above the limit", () => {
  const body = new Blob([Buffer.alloc(10 * 2 ** 20 + 1, " ")]);

  test.each([
    ["says how long it is", body],
    ["only shows how long it is", body.stream()],
  ])("is refused with PostgREST's error, if it %s", async (_how, sent) => {
    const refused = await fetch(`${serving.url}/rest/v1/parcels`, {
      method: "POST",
      headers: { apikey: tokenOf({ role: "authenticated" }), "Content-Type": "application/json" },
      body: sent,
      duplex: "half",
    });
    expect(refused.status).toBe(413);
    expect(await refused.json()).toEqual({
      code: "PAYLOAD_TOO_LARGE",
      message: expect.any(String),
      details: null,
      hint: expect.any(String),
    });
  });

  test("is also one that exceeds all limits as JSON", async () => {
    const { status, body: result } = await insert(
      `${"n".repeat(1e6)}\n${"1\n".repeat(1e6)}`,
      "text/csv",
      "return=minimal",
    );
    expect([status, result.code]).toEqual([413, "PAYLOAD_TOO_LARGE"]);
  });
});
