import { expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { BACKFILL_SQL, END_BACKFILL, runSlowBackfill } from "../../migrate/declared-backfill.ts";
import { serve } from "../../serve.ts";
import { until } from "../../until.ts";
import { openOperatedService } from "./operated-service.ts";

const PATH = "/admin/v1/migrations/backfills";

const operated = useFixture(() =>
  openOperatedService({ STUDIO_SQL: "on" }, "platform", async (owner) => {
    await owner.query(BACKFILL_SQL);
  }),
);

const list = async () => (await operated.send(PATH, { token: operated.tokens.admin })).body;
const send = (id: unknown, body: object) => operated.send(`${PATH}/${id}`, { token: operated.tokens.admin, body });
const state = async () => (await list()).backfills[0]?.state;

test("a backfill is listed with its progress, and its session pauses and resumes it", async () => {
  const { refusal, run_command, backfills } = await list();
  expect([refusal, run_command]).toEqual([null, "npm run migrate -- backfill"]);
  const [{ id, ...declared }] = backfills;
  expect(declared).toEqual({
    table: "public.items",
    column: "cents",
    estimated_rows: 30_000,
    state: "not started",
    progress: null,
  });
  expect(await send(id, { paused: true })).toMatchObject({
    status: 409,
    body: { error: { code: "STATE_CONFLICT", message: expect.stringContaining("npm run migrate -- backfill") } },
  });
  const ended = runSlowBackfill(operated.database);
  await until(async () => (await list()).backfills[0].progress?.read > 0);
  expect((await list()).backfills[0]).toMatchObject({
    state: "running",
    progress: {
      filled: expect.any(Number),
      rows_per_second: expect.any(Number),
      load: 1,
      waits_for: null,
      error: null,
      started_at: expect.any(String),
      updated_at: expect.any(String),
    },
  });
  expect((await send(id, { paused: true })).status).toBe(204);
  expect(await state()).toBe("paused");
  expect((await send(id, { paused: false })).status).toBe(204);
  expect(await state()).toBe("running");
  await operated.owner.query(END_BACKFILL);
  await ended;
  expect((await list()).backfills[0]).toMatchObject({ state: "stopped", progress: { error: expect.any(String) } });
  expect((await send(id, { paused: false })).status).toBe(409);
  const events = (await operated.events()).filter(({ event }) => event.startsWith("studio.backfill_"));
  expect(events.map(({ event, details }) => [event, details])).toEqual([
    ["studio.backfill_paused", { table: "public.items", column: "cents" }],
    ["studio.backfill_resumed", { table: "public.items", column: "cents" }],
  ]);
});

test("unknown ones and other bodies are refused, and all changes with STUDIO_SQL=false", async () => {
  expect((await send(1, { paused: true })).status).toBe(404);
  expect((await send(1, { paused: "yes" })).status).toBe(400);
  const off = await serve(operated.database, { STUDIO_SQL: "off", BASE_SCHEMA: "platform" });
  try {
    const headers = { authorization: `Bearer ${operated.tokens.admin}`, "content-type": "application/json" };
    const listed = await (await fetch(off.url + PATH, { headers })).json();
    expect(listed).toMatchObject({ refusal: { how: "Set STUDIO_SQL=true." } });
    const refused = await fetch(`${off.url}${PATH}/1`, { method: "POST", headers, body: '{"paused":true}' });
    expect(refused.status).toBe(403);
  } finally {
    await off.stop();
  }
});
