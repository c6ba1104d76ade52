import { expect, test } from "vitest";
import { type ArchivedService, startArchivedService } from "./archived-service.ts";
import { openOperatedService, tokenFor } from "./operated-service.ts";

const NOTES = `
  create table public.notes (id int primary key, body text);
  insert into public.notes select n, 'note ' || n from generate_series(1, 100) n;
  create table public.cards (note int references public.notes on delete cascade, tag text, primary key (note, tag));
  insert into public.cards values (1, 'red');
  create table public.gone ()`;
const LOSS = `
  delete from public.notes where id = 1;
  update public.notes set body = 'changed' where id = 2;
  insert into public.notes values (1000, 'later');
  drop table public.gone`;

const call = async ({ url }: ArchivedService, body?: object) => {
  const response = await fetch(`${url}/admin/v1/lost-rows`, {
    method: body ? "POST" : "GET",
    headers: { authorization: `Bearer ${tokenFor({ role: "admin" })}`, "content-type": "application/json" },
    ...(body && { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as { readonly tables: readonly object[] } };
};
const refused = (status: number, message: string) => ({
  status,
  body: { error: { message: expect.stringContaining(message) } },
});

test("rows that were deleted or overwritten since a time are listed, and brought back", async () => {
  await using service = await startArchivedService();
  await service.query(NOTES);
  const at = await service.passTime();
  await service.query(LOSS);
  expect(await call(service)).toMatchObject({
    status: 200,
    body: {
      refusal: null,
      command: "npm run restore -- --lost --at '10 minutes ago'",
      recoverable: { from: expect.any(String), to: expect.any(String) },
    },
  });
  expect(await call(service, { at: "soon" })).toMatchObject(refused(400, "Specify a time such as"));
  expect(await call(service, { at: "latest" })).toMatchObject(refused(400, "Specify a time in the past."));
  expect(await call(service, { at, overwrite: true })).toMatchObject(refused(400, "overwrite belongs to apply"));
  expect(await call(service, { at: "2001-01-01" })).toMatchObject(refused(409, "2001-01-01"));
  const notes = { table: '"public"."notes"', missing: 1, different: 1, only_here: 1 };
  const [found, second] = await Promise.all([call(service, { at }), call(service, { at })]);
  // One at a time.
  expect([found.status, second.status].sort()).toEqual([200, 503]);
  expect(found.status === 200 ? found.body : second.body).toMatchObject({
    as_of: at,
    dropped_tables: ['"public"."gone"'],
    copy_command: `npm run restore -- --at ${at} --into FOLDER`,
    tables: [
      {
        ...notes,
        key: ["id"],
        missing_examples: [expect.stringContaining("note 1")],
        different_examples: [expect.stringContaining('["changed", "note 2"]')],
        dependents: ["public.cards"],
        inserted: null,
      },
      { table: '"public"."cards"', missing: 1, missing_examples: [expect.stringContaining("red")] },
    ],
  });
  const applied = await call(service, { at, apply: true });
  expect(applied.body.tables).toMatchObject([{ ...notes, inserted: 1, updated: 0 }, { inserted: 1 }]);
  const rows = "select id, body, tag from public.notes left join public.cards on note = id where id < 3 order by id";
  expect(await service.query(rows)).toEqual([
    { id: 1, body: "note 1", tag: "red" },
    { id: 2, body: "changed", tag: null },
  ]);
  expect((await call(service, { at, apply: true, overwrite: true })).body.tables).toMatchObject([
    { missing: 0, inserted: 0, updated: 1 },
  ]);
  expect((await service.query(rows))[1]).toEqual({ id: 2, body: "note 2", tag: null });
  const events = await service.query(
    "select event, details from auth.audit_log where event ~ 'lost_rows|rows.restored' order by id",
  );
  expect(events.map(({ event }) => event)).toEqual([
    "studio.lost_rows_searched",
    "studio.lost_rows_searched",
    "studio.lost_rows_searched",
    "studio.lost_rows_restored",
    "rows.restored",
    "rows.restored",
    "studio.lost_rows_restored",
    "rows.restored",
  ]);
});

test("without an archive, or with STUDIO_SQL=false, nothing is restored, and the reason is given", async () => {
  for (const [settings, how, status] of [
    [{ STUDIO_SQL: "on" }, null, 409],
    [{ STUDIO_SQL: "off" }, "Set STUDIO_SQL=true.", 403],
  ] as const) {
    const operated = await openOperatedService(settings, "platform");
    try {
      const token = operated.tokens.admin;
      const shown = await operated.send("/admin/v1/lost-rows", { token });
      expect(shown.body).toMatchObject({ refusal: { how }, recoverable: null });
      const sent = { token, body: { at: "1 minute ago", apply: true } };
      expect((await operated.send("/admin/v1/lost-rows", sent)).status).toBe(status);
      expect((await operated.send("/admin/v1/lost-rows", { ...sent, token: operated.tokens.user })).status).toBe(403);
    } finally {
      await operated.close();
    }
  }
});
