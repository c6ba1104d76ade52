import { readFile } from "node:fs/promises";
import { join } from "node:path";
import fc from "fast-check";
import { runMigrations } from "graphile-worker";
import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { findDueTimes } from "../../jobs/cron/cron-times.ts";
import { propertyRuns } from "../property-runs.ts";
import { REPOSITORY } from "../repository.ts";
import { connect } from "./callers.ts";
import { useContent } from "./content.ts";

const FUNCTIONS = `
  create function public.clean_up(days integer default 30) returns void language sql as '';
  create function public.hidden() returns void language sql as '';
  grant execute on function public.clean_up to service_role, authenticated;
  create role schedule_writer nologin;
  grant authenticated to schedule_writer;
  grant usage on schema api to schedule_writer;
  grant select, delete, insert (name, cron, time_zone, function, arguments, role, is_enabled) on api.schedules to schedule_writer;
  grant update (cron, function, role, is_enabled) on api.schedules to schedule_writer;
  grant select on api.schedule_runs to schedule_writer;
`;
const ROLES = ["schedule_writer", "schedule_stranger"];

const content = useContent();

beforeAll(async () => {
  await runMigrations({ connectionString: content.database.ownerUrl });
  await content.owner.query(FUNCTIONS);
});
afterAll(async () => {
  for (const role of ROLES) {
    const { rowCount } = await content.owner.query("select from pg_roles where rolname = $1", [role]);
    if (rowCount) await content.owner.query(`drop owned by ${role}; drop role ${role}`);
  }
});

const SCHEDULE = { name: "nightly", cron: "30 3 * * *", function: "public.clean_up", role: "service_role" };

/** Runs the work in a transaction that is rolled back. */
async function undone<T>(work: () => Promise<T>): Promise<T> {
  await content.owner.query("begin");
  try {
    return await work();
  } finally {
    await content.owner.query("rollback");
  }
}

async function insert(schedule: Readonly<Record<string, unknown>>): Promise<void> {
  const columns = Object.keys(schedule).map((name) => pg.escapeIdentifier(name));
  const values = columns.map((_, index) => `$${index + 1}`);
  const statement = `insert into api.schedules (${columns.join(", ")}) values (${values.join(", ")})`;
  await content.owner.query(statement, Object.values(schedule));
}

type Refusal = { readonly code: string; readonly message: string; readonly detail: string; readonly hint: string };

/** Null if it is accepted. */
function refusalOf(schedule: Readonly<Record<string, unknown>>): Promise<Refusal | null> {
  return undone(() =>
    insert({ ...SCHEDULE, ...schedule }).then(
      () => null,
      ({ code, message, detail, hint }: Refusal) => ({ code, message, detail, hint }),
    ),
  );
}

describe("a schedule that is written", () => {
  test("is accepted with a cron text, a time zone, a function and a role that exist", async () => {
    expect(await refusalOf({})).toBeNull();
    const cron = "*/5,1-3 0-6/2 1,15,31 jan-MAR,12 mon-7";
    expect(
      await refusalOf({ cron, time_zone: "Europe/Berlin", arguments: { days: 7 }, claims: { sub: "1" } }),
    ).toBeNull();
    expect(await refusalOf({ cron: "@Daily", role: "authenticated", time_limit: "5 min" })).toBeNull();
  });

  test.each([
    ["30 3 * *", 'A cron text has five fields, and "30 3 * *" has 4'],
    ["0 30 3 * * *", 'A cron text has five fields, and "0 30 3 * * *" has 6'],
    ["", 'A cron text has five fields, and "" has 1'],
    ["60 3 * * *", 'The minute of a cron text cannot be "60"'],
    ["* 3-1 * * *", 'The hour of a cron text cannot be "3-1"'],
    ["* * 0 * *", 'The day of a cron text cannot be "0"'],
    ["* * * janu *", 'The month of a cron text cannot be "janu"'],
    ["* * * * jan", 'The weekday of a cron text cannot be "jan"'],
    ["5/10 * * * *", 'The minute of a cron text cannot be "5/10"'],
    ["*/0 * * * *", 'The minute of a cron text cannot be "*/0"'],
    ["1,,2 * * * *", 'The minute of a cron text cannot be ""'],
    ["0 0 L * *", 'The day of a cron text cannot be "l"'],
    ["0 0 30 2 *", 'The months of "0 0 30 2 *" have no such day'],
  ])('with the cron text "%s" is refused: %s', async (cron, message) => {
    expect(await refusalOf({ cron })).toMatchObject({ code: "WRONG", detail: "cron", message });
  });

  test("with a wrong field is refused, with a hint of the values to write", async () => {
    expect((await refusalOf({ cron: "* * * * 8" }))?.hint).toBe(
      "Write *, numbers from 0 to 7, ranges such as 0-5, steps such as */2 or 0-5/2, or a list of these separated by commas, or names such as sun.",
    );
    expect((await refusalOf({ cron: "* * * *" }))?.hint).toContain("such as 30 3 * * *");
    expect(await refusalOf({ time_zone: "europe/berlin" })).toMatchObject({
      ...{ code: "WRONG", detail: "time_zone" },
      ...{ message: "There is no time zone europe/berlin", hint: "Write Europe/Berlin." },
    });
    expect((await refusalOf({ time_zone: "Berlin" }))?.hint).toContain("such as Europe/Berlin");
    expect((await refusalOf({ function: "public.hidden" }))?.hint).toContain(
      "grant execute on function … to service_role",
    );
    expect((await refusalOf({ role: "postgres" }))?.hint).toContain('the column "role" of a schedule');
    expect(await refusalOf({ role: null })).toMatchObject({
      ...{ code: "WRONG", detail: "role", message: "A schedule must have a role" },
    });
  });

  test("is refused if its role may not run its function with its arguments", async () => {
    expect(await refusalOf({ role: "nobody" })).toMatchObject({ code: "WRONG", detail: "role" });
    expect(await refusalOf({ role: "postgres" })).toMatchObject({ code: "NOPER" });
    expect(await refusalOf({ function: "public.hidden" })).toMatchObject({ code: "NTFND", detail: "function" });
    expect(await refusalOf({ function: "public.gone" })).toMatchObject({ code: "NTFND", detail: "function" });
    expect(await refusalOf({ arguments: { weeks: 2 } })).toMatchObject({ code: "WRONG", detail: "arguments" });
    expect(await refusalOf({ arguments: "[]" })).toMatchObject({ code: "WRONG", detail: "arguments" });
    expect(await refusalOf({ claims: "[]" })).toMatchObject({ code: "23514" });
    expect(await refusalOf({ time_limit: "0" })).toMatchObject({ code: "23514" });
  });

  test("has a role that the login of the service can become", async () => {
    await undone(async () => {
      await content.owner.query(
        "create role schedule_stranger; grant execute on function public.clean_up to schedule_stranger",
      );
      await expect(insert({ ...SCHEDULE, role: "schedule_stranger" })).rejects.toMatchObject({
        code: "NOPER",
        hint: "Run once as the owner: grant schedule_stranger to authenticator",
      });
    });
  });

  test("can be disabled when its function or its role is gone, and not be enabled again", async () => {
    await undone(async () => {
      const { owner } = content;
      await owner.query("create role schedule_stranger; grant schedule_stranger to authenticator");
      await owner.query(
        "create function public.brief() returns void language sql as ''; grant usage on schema public to schedule_stranger",
      );
      await owner.query("grant execute on function public.brief to schedule_stranger");
      await insert({ ...SCHEDULE, role: "schedule_stranger", function: "public.brief" });
      await owner.query("drop function public.brief; drop owned by schedule_stranger; drop role schedule_stranger");
      await owner.query("update api.schedules set is_enabled = false");
      await expect(owner.query("update api.schedules set is_enabled = true")).rejects.toMatchObject({ code: "WRONG" });
    });
  });

  test("counts its times from the change of the cron text, the time zone or of being enabled", async () => {
    await undone(async () => {
      const { owner } = content;
      await insert({ ...SCHEDULE, next_run_at: "2030-01-01" });
      const next = async () => (await owner.query("select next_run_at from api.schedules")).rows[0].next_run_at;
      expect(await next()).toBeNull();
      const setNext = () => owner.query("update api.schedules set next_run_at = '2030-01-01'");
      await setNext();
      await owner.query("update api.schedules set arguments = '{}', catch_up = true");
      expect(await next()).not.toBeNull();
      await owner.query("update api.schedules set cron = '31 3 * * *'");
      expect(await next()).toBeNull();
      await setNext();
      await owner.query("update api.schedules set is_enabled = false");
      expect(await next()).not.toBeNull();
      await owner.query("update api.schedules set is_enabled = true");
      expect(await next()).toBeNull();
    });
  });
});

describe("a role that may write schedules", () => {
  const asWriter = <T>(work: () => Promise<T>) =>
    undone(async () => {
      await insert({ ...SCHEDULE, name: "of the service" });
      await content.owner.query("set local role schedule_writer");
      return work();
    });

  test("chooses roles that it is a member of", async () => {
    await asWriter(() => insert({ ...SCHEDULE, role: "authenticated" }));
    await expect(asWriter(() => insert(SCHEDULE))).rejects.toMatchObject({
      code: "NOPER",
      message: "Only members of service_role may choose it as the role of a schedule",
    });
    const change = "update api.schedules set role = 'service_role' where name = 'nightly'";
    const changeRole = async () => {
      await insert({ ...SCHEDULE, role: "authenticated" });
      await content.owner.query(change);
    };
    await expect(asWriter(changeRole)).rejects.toMatchObject({ code: "NOPER" });
    const smuggle = "update api.schedules set role = 'service_role', is_enabled = false where name = 'nightly'";
    const changeDisabled = async () => {
      await insert({ ...SCHEDULE, role: "authenticated" });
      await content.owner.query(smuggle);
    };
    await expect(asWriter(changeDisabled)).rejects.toMatchObject({ code: "NOPER" });
  });

  test("sees and changes no schedules and runs of other roles", async () => {
    await asWriter(async () => {
      const { owner } = content;
      expect((await owner.query("select from api.schedules")).rowCount).toBe(0);
      expect((await owner.query("update api.schedules set is_enabled = false")).rowCount).toBe(0);
      expect((await owner.query("delete from api.schedules")).rowCount).toBe(0);
      expect((await owner.query("select from api.schedule_runs")).rowCount).toBe(0);
    });
  });
});

describe("runs that are started at the same time", () => {
  const START = "select api.run_schedule('nightly') as status";
  const statusOf = async (client: pg.Client) => (await client.query<{ status: string }>(START)).rows[0]!.status;
  let clients: pg.Client[];
  beforeEach(async () => {
    await insert(SCHEDULE);
    clients = await Promise.all(Array.from({ length: 6 }, () => connect(content.database.ownerUrl)));
  });
  afterEach(async () => {
    await Promise.all(clients.map((client) => client.end()));
    await content.owner.query("delete from api.schedules");
  });
  const unfinished = async () =>
    (await content.owner.query("select from api.schedule_runs where status in ('queued', 'running')")).rowCount;

  test("are skipped, except one", async () => {
    const statuses = await Promise.all(clients.map(statusOf));
    expect(statuses.sort()).toEqual(["queued", ...Array(5).fill("skipped")]);
    expect(await unfinished()).toBe(1);
  });

  test("do not wait for a transaction that has started one", async () => {
    const [first, second] = clients as [pg.Client, pg.Client];
    await first.query("begin");
    expect(await statusOf(first)).toBe("queued");
    expect(await statusOf(second)).toBe("skipped");
    await first.query("rollback");
    expect(await statusOf(second)).toBe("queued");
    expect(await unfinished()).toBe(1);
  });

  test("cannot overlap, whatever the isolation of their transactions", async () => {
    const [first, second] = clients as [pg.Client, pg.Client];
    await second.query("begin isolation level repeatable read; select from api.schedule_runs");
    expect(await statusOf(first)).toBe("queued");
    await expect(statusOf(second)).rejects.toThrow(/schedule_runs_unfinished/);
    await second.query("rollback");
    expect(await unfinished()).toBe(1);
  });
});

test("roles of requests may neither read nor write schedules", async () => {
  for (const role of ["anon", "authenticated", "admin", "service_role"]) {
    for (const statement of [
      "select from api.schedules",
      "select from api.schedule_runs",
      "select api.run_schedule('nightly')",
    ]) {
      const attempt = undone(async () => {
        await content.owner.query(`set local role ${role}`);
        await content.owner.query(statement);
      });
      await expect(attempt).rejects.toMatchObject({ code: "42501" });
    }
  }
});

test("the SQL of docs/schedules.md runs", async () => {
  const page = await readFile(join(REPOSITORY, "docs/schedules.md"), "utf8");
  const blocks = [...page.matchAll(/^```sql\n(.*?)^```$/gms)].map(([, block]) => block!);
  expect(blocks.length).toBeGreaterThan(1);
  await undone(async () => {
    await content.owner.query("create table public.readings (sensor text, taken_at timestamptz)");
    for (const block of blocks) await content.owner.query(block);
  });
});

test("each cron text that can be written can be evaluated, and has a time", async () => {
  const number = fc.integer({ min: 0, max: 61 }).map(String);
  const name = fc.constantFrom("jan", "DEC", "sun", "Sat", "x");
  const value = fc.oneof({ weight: 6, arbitrary: number }, name);
  const bounds = fc.oneof(
    fc.constant("*"),
    value,
    fc.tuple(value, value).map(([from, to]) => `${from}-${to}`),
  );
  const item = fc.oneof(
    { weight: 3, arbitrary: bounds },
    fc.tuple(bounds, number).map(([range, step]) => `${range}/${step}`),
  );
  const field = fc.oneof(
    { weight: 3, arbitrary: fc.constant("*") },
    item,
    fc.array(item, { minLength: 2, maxLength: 3 }).map(String),
  );
  const crons = fc.array(field, { minLength: 5, maxLength: 5 }).map((fields) => fields.join(" "));
  const after = new Date("2026-01-01T00:00:00Z");
  let accepted = 0;
  await fc.assert(
    fc.asyncProperty(crons, async (cron) => {
      const check = content.owner.query("select content_service.check_cron($1)", [cron]);
      if (
        await check.then(
          () => true,
          () => false,
        )
      ) {
        accepted++;
        expect(findDueTimes({ cron, timeZone: "Asia/Kolkata" }, after, after).next).not.toBeNull();
      }
    }),
    { numRuns: propertyRuns(10_000) },
  );
  expect(accepted).toBeGreaterThan(0);
});
