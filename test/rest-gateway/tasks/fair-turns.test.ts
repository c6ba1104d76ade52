import jwt from "jsonwebtoken";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { SECRET } from "../../secret.ts";
import { until } from "../../until.ts";
import { newPerson, openGateways, type Person, type Sent } from "../sign-in/gateways.ts";

const FUNCTIONS = `
  create table public.ends (note text not null, place bigint generated always as identity);
  create function public.slow(gate bigint, note text default 'slow') returns void
    language plpgsql security definer set search_path = '' as $$
  begin
    perform pg_advisory_xact_lock_shared(gate);
    insert into public.ends values (note);
  end $$;
  create function public.write_down(note text) returns void language sql security definer set search_path = '' as $$
    insert into public.ends values (note)
  $$;
  create function public.time_limit() returns text language sql volatile as $$ select current_setting('statement_timeout') $$;
  create function public.enqueue(function text, arguments jsonb default '{}') returns uuid
    return api.enqueue(format('public.%I', function), arguments);
  grant execute on function public.slow, public.write_down, public.time_limit to anon, authenticated, service_role;
  grant execute on function public.enqueue to authenticated, service_role;
`;

const GATE = 7_001;
const STRANGER = "203.0.113.9";
let ada: Person;
let eve: Person;
const apikey = jwt.sign({ role: "anon" }, SECRET);
const later = { apikey, Prefer: "respond-async" };

const settings = { RATE_LIMIT: "0", DB_LOCK_TIMEOUT_SECONDS: "0", DB_ANON_STATEMENT_TIMEOUT_SECONDS: "200" };
const gateways = useFixture(() => openGateways({ settings: { ...settings, DB_STATEMENT_TIMEOUT_SECONDS: "250" } }));
beforeAll(async () => {
  await gateways.owner.query(FUNCTIONS);
  [ada, eve] = [await newPerson(gateways), await newPerson(gateways)];
  await until(async () => (await call("write_down", { note: "served" }, { headers: { apikey } })).status === 204);
});
beforeEach(() => gateways.owner.query("delete from public.ends"));

function call(name: string, body: object, sent: Sent) {
  return gateways.post(`${gateways.one.url}/rest/v1/rpc/${name}`, body, sent);
}

async function ends(): Promise<string[]> {
  return (await gateways.owner.query("select note from public.ends order by place")).rows.map(({ note }) => note);
}

/** Runs the work while calls of `slow` wait, then lets them end. */
async function whileClosed(work: () => Promise<void>): Promise<void> {
  const client = await gateways.owner.connect();
  try {
    await client.query("select pg_advisory_lock($1)", [GATE]);
    await work();
  } finally {
    await client.query("select pg_advisory_unlock($1)", [GATE]);
    client.release();
  }
  await until(async () => (await unfinished()) === 0);
}

async function unfinished(condition = "true"): Promise<number> {
  const text = `select count(*)::int as n from content_service.tasks where finished_at is null and ${condition}`;
  return (await gateways.owner.query(text)).rows[0].n;
}

async function resultsOf(ids: readonly string[]): Promise<unknown[]> {
  const text = "select result from content_service.tasks where id = any($1)";
  return (await gateways.owner.query(text, [ids])).rows.map(({ result }) => result);
}

/** Queues calls of a stranger without an account, from one address. */
async function floodAnonymously(count = 100): Promise<void> {
  const sent = { headers: later, from: STRANGER };
  for (let left = count; left > 0; left -= 10) {
    const answers = await Promise.all(Array.from({ length: 10 }, () => call("slow", { gate: GATE }, sent)));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([202]));
  }
}

/** Queues calls of a stranger with an account. */
function floodSignedIn(count = 300): Promise<unknown> {
  const claims = JSON.stringify({ sub: String(eve.userId), role: "authenticated", iss: "flood" });
  return gateways.owner.query(
    `select content_service.queue_call('authenticated', $1, 'slow', $2) from generate_series(1, $3)`,
    [claims, { gate: GATE }, count],
  );
}

describe("while a stranger's slow tasks wait by the hundred", () => {
  test("the task of another anonymous caller runs", async () => {
    await whileClosed(async () => {
      await floodAnonymously();
      await until(async () => (await unfinished("status = 'running'")) > 0);
      await call("write_down", { note: "another" }, { headers: later, from: "198.51.100.4" });
      await until(async () => (await ends()).includes("another"));
    });
    expect((await ends())[0]).toBe("another");
  });

  test("a signed-in caller's task, a schedule, a call that a trigger queues, a direct call and a mail are done", async () => {
    await whileClosed(async () => {
      await floodAnonymously();
      await floodSignedIn();
      await until(async () => (await unfinished("status = 'running'")) >= 4);
      await call("write_down", { note: "ada" }, { token: ada.pair.accessToken, headers: later });
      await gateways.owner.query(`
        insert into api.schedules (name, cron, function, arguments, role)
          values ('nightly', '0 3 * * *', 'public.write_down', '{"note": "schedule"}', 'service_role');
        select api.run_schedule('nightly');
        select api.enqueue_as('service_role', 'public.write_down', '{"note": "trigger"}')`);
      expect((await call("write_down", { note: "direct" }, { headers: { apikey } })).status).toBe(204);
      const { email } = ada;
      await gateways.post(`${gateways.one.url}/auth/forgot-password`, { email }, {});
      expect(await gateways.mailTo({ to: email, about: "Set a new password" })).toContain("http");
      await until(async () => (await ends()).length === 4);
    });
    expect((await ends()).slice(0, 4).sort()).toEqual(["ada", "direct", "schedule", "trigger"]);
  });

  test("one caller runs three tasks at a time, and an address without an account one", async () => {
    await whileClosed(async () => {
      await floodAnonymously(20);
      await floodSignedIn(20);
      await until(async () => (await unfinished("status = 'running'")) === 4);
      await gateways.owner.query("select content_service.maintain_tasks()");
      const begun = await gateways.owner.query(
        "select * from content_service.begin_task('caller') union all select * from content_service.begin_task('anonymous')",
      );
      expect(begun.rows).toEqual([]);
    });
    expect(await ends()).toHaveLength(40);
  });
});

describe("turns", () => {
  test("go round among callers, however many tasks each has, and a task that is due later gets its turn then", async () => {
    const client = await gateways.owner.connect();
    try {
      // The transaction is rolled back, so that no gateway begins them.
      await client.query("begin; update content_service.bounds set bound = 1000 where name like 'running%'");
      const queue = (owner: string, count: number, runAt = "now()") =>
        client.query(
          `insert into content_service.tasks (owner, caller_key, work, caller, request, body, run_at, created_at)
            select $1, $1, $1, '{}', '{}', '', ${runAt}, now() + n * interval '1 ms' from generate_series(1, $2) as n`,
          [owner, count],
        );
      const begin = async () =>
        (
          await client.query(
            "select owner from content_service.begin_task('caller') join content_service.tasks using (id)",
          )
        ).rows[0]?.owner;
      await queue("eve", 300);
      expect([await begin(), await begin()]).toEqual(["eve", "eve"]);
      await queue("ada", 2);
      await queue("bob", 1);
      await queue("late", 50, "clock_timestamp() + interval '1 hour'");
      expect([await begin(), await begin(), await begin()].sort()).toEqual(["ada", "bob", "eve"]);
      for (let index = 0; index < 9; index++) await begin();
      await client.query("update content_service.tasks set run_at = now() where owner = 'late'");
      await queue("new", 1);
      const next = [await begin(), await begin(), await begin(), await begin()];
      expect(next.filter((owner) => owner === "late").length).toBeLessThan(3);
      expect(next).toContain("new");
      expect(next).toContain("eve");
    } finally {
      await client.query("rollback");
      client.release();
    }
  });
});

describe("queued work", () => {
  test("of a caller has the time limit of the direct call, and a schedule has its own", async () => {
    for (const token of [undefined, ada.pair.accessToken]) {
      const direct = await call("time_limit", {}, { token, headers: { apikey } });
      expect(direct.body).toBe(token === undefined ? "200s" : "250s");
      const queued = [(await call("time_limit", {}, { token, headers: later })).body.taskId];
      if (token) queued.push((await call("enqueue", { function: "time_limit" }, { token, headers: { apikey } })).body);
      await until(async () => (await unfinished()) === 0);
      expect(await resultsOf(queued)).toEqual(queued.map(() => direct.body));
    }
    const { rows } = await gateways.owner.query("select api.enqueue_as('service_role', 'public.time_limit') as id");
    await until(async () => (await unfinished()) === 0);
    expect(await resultsOf([rows[0].id])).toEqual(["10min"]);
  });

  test("of an anonymous caller is bounded by address, and other addresses are not refused", async () => {
    await gateways.owner.query(
      "update content_service.bounds set bound = 2 where name = 'tasks of an anonymous caller'",
    );
    await whileClosed(async () => {
      const from = "192.0.2.77";
      const answers = [];
      for (let index = 0; index < 3; index++)
        answers.push(await call("slow", { gate: GATE }, { headers: later, from }));
      expect(answers.map(({ status }) => status)).toEqual([202, 202, 429]);
      expect(answers[2]!.headers.get("retry-after")).toBe("1");
      expect((await call("slow", { gate: GATE }, { headers: later, from: "192.0.2.78" })).status).toBe(202);
    });
    await gateways.owner.query(
      "update content_service.bounds set bound = 100 where name = 'tasks of an anonymous caller'",
    );
  });

  test("of an anonymous account is bounded by address too", async () => {
    const from = "192.0.2.79";
    const signUp = async () => {
      const claims = { sub: String(ada.userId), role: "authenticated", is_anonymous: true };
      return jwt.sign(claims, SECRET, { expiresIn: 60 });
    };
    const { body } = await call("write_down", { note: "x" }, { token: await signUp(), headers: later, from });
    const { rows } = await gateways.owner.query("select lane, caller_key from content_service.tasks where id = $1", [
      body.taskId,
    ]);
    expect(rows).toEqual([{ lane: "anonymous", caller_key: `address ${from}` }]);
  });

  test("is done without its result where the results of the caller take too much space", async () => {
    await gateways.owner.query(`
      create function public.large() returns text language sql set search_path = '' as $$ select repeat('x', 100000) $$;
      grant execute on function public.large to anon;
      update content_service.bounds set bound = 150000 where name = 'bytes of tasks of a caller'`);
    const sent = { headers: later, from: "192.0.2.80" };
    // Either gateway may run the tasks.
    for (const { url } of [gateways.one, gateways.two])
      await until(
        async () => (await gateways.post(`${url}/rest/v1/rpc/large`, {}, { headers: { apikey } })).status === 200,
      );
    const bodies = [];
    for (let index = 0; index < 2; index++) {
      const { taskId } = (await call("large", {}, sent)).body;
      await until(async () => (await unfinished()) === 0);
      bodies.push((await gateways.get(`${gateways.two.url}/api/v1/tasks/${taskId}`, {})).body);
    }
    await gateways.owner.query(
      "update content_service.bounds set bound = 67108864 where name = 'bytes of tasks of a caller'",
    );
    expect(bodies[0]).toMatchObject({ status: "done", result: "x".repeat(100_000) });
    expect(bodies[1]).toMatchObject({ status: "done", result: null, error: { code: "RESULT_NOT_KEPT" } });
  });
});
