import { runMigrations } from "graphile-worker";
import { beforeAll, describe, expect, test } from "vitest";
import { useContent } from "./content.ts";
import { type Ask, rolledBack } from "./rolled-back.ts";

const content = useContent();
beforeAll(() => runMigrations({ connectionString: content.database.ownerUrl }));
const undone = (work: (ask: Ask) => Promise<void>) => rolledBack(content.owner, work);

const CALLER = `'{"kind": "known", "role": "authenticated", "claims": {"sub": "1", "role": "authenticated"}}'`;
const queue = (owner = "user 1", lane = "caller") =>
  `select id from content_service.queue_task(null, '${owner}', 'POST /api/v1/articles', ${CALLER}, '{}', 'body', null, '${lane}')`;

describe("a task", () => {
  test("is queued, begun, read by its owner and failed", () =>
    undone(async ({ value, rows }) => {
      const id = await value(queue());
      expect(await rows(`select status, progress from content_service.read_task('${id}', 'user 1')`)).toEqual([
        { status: "queued", progress: 0 },
      ]);
      expect(await rows(`select from content_service.read_task('${id}', 'user 2')`)).toEqual([]);
      expect(await rows("select id from content_service.begin_task('caller')")).toEqual([{ id }]);
      expect(await value(`select content_service.lock_task('${id}')`)).toBe(true);
      expect(await value("select current_setting('request.task')")).toBe(id);
      expect(await value(`select content_service.task_progress('${id}')`)).toBeNull();
      await rows(`select content_service.fail_task('${id}', '{"code": "XX000"}')`);
      expect(await rows(`select status, error from content_service.read_task('${id}', 'user 1')`)).toEqual([
        { status: "failed", error: { code: "XX000" } },
      ]);
      expect(await value(`select content_service.lock_task('${id}')`)).toBe(false);
      await rows(`select content_service.remove_jobs_of(array['${id}']::uuid[])`);
      expect(await rows("select from graphile_worker.jobs")).toEqual([]);
    }));

  test("waits again after an attempt that could not run it", () =>
    undone(async ({ value, rows }) => {
      const id = await value(queue());
      await rows("select content_service.begin_task('caller')");
      await rows(`select content_service.requeue_task('${id}', '1 hour')`);
      expect(await rows("select status, run_at > now() as later from content_service.tasks")).toEqual([
        { status: "queued", later: true },
      ]);
    }));

  test("is begun by reading a few rows, however many of its caller's tasks wait", () =>
    undone(async ({ value, rows }) => {
      await rows("update content_service.bounds set bound = 9999 where name = 'tasks of a caller'");
      await rows(`
        insert into content_service.tasks (owner, work, caller, request, body, caller_key, turn)
          select 'user 1', 'POST /api/v1/articles', ${CALLER}, '{}', 'body', 'user 1', n from generate_series(1, 3000) as n`);
      await rows("analyze content_service.tasks");
      const readRows = async () =>
        Number(
          await value(
            "select seq_tup_read + idx_tup_fetch from pg_stat_xact_user_tables where relid = 'content_service.tasks'::regclass",
          ),
        );
      await rows(queue());
      const before = await readRows();
      expect(await rows("select from content_service.begin_task('caller')")).toHaveLength(1);
      expect((await readRows()) - before).toBeLessThan(100);
    }));

  test("is withdrawn by its owner, unless it runs", () =>
    undone(async ({ value, rows }) => {
      const [one, two] = [await value(queue()), await value(queue())];
      expect(await value(`select content_service.withdraw_task('${one}', 'user 2')`)).toBeNull();
      expect(await value(`select content_service.withdraw_task('${one}', 'user 1')`)).toBe("queued");
      await rows("select content_service.begin_task('caller')");
      expect(await value(`select content_service.withdraw_task('${two}', 'user 1')`)).toBe("running");
      expect(await rows("select id from content_service.tasks")).toEqual([{ id: two }]);
    }));

  test("wakes the lane when its caller was running as many as it may", () =>
    undone(async ({ value, rows }) => {
      await rows("update content_service.bounds set bound = 1 where name = 'running tasks of a caller'");
      await rows(`${queue()}; ${queue()}`);
      await rows("select content_service.begin_task('caller')");
      expect(await rows("select content_service.begin_task('caller')")).toEqual([]);
      const jobs = Number(await value("select count(*) from graphile_worker.jobs"));
      await rows("select content_service.wake_lane('caller', 'user 1')");
      expect(Number(await value("select count(*) from graphile_worker.jobs"))).toBe(jobs + 1);
    }));

  test("is refused to a caller who has too many", () =>
    undone(async ({ rows, value, refusal }) => {
      expect(await value("select content_service.bound('tasks of a caller')")).toBe("1000");
      await rows("update content_service.bounds set bound = 1 where name = 'tasks of a caller'");
      await rows(queue());
      expect(await refusal(queue())).toBe("TOMNY");
      expect(await refusal("select content_service.check_task_bounds('caller', 'user 1', 'authenticated')")).toBe(
        "TOMNY",
      );
      expect(await refusal("select content_service.check_task_bounds('caller', 'user 2', 'authenticated')")).toBe(
        "none",
      );
    }));

  test("outlives the sessions of its user, but neither the password nor the role", () =>
    undone(async ({ value, rows }) => {
      await rows(
        "insert into auth.users (user_id, username, password_changed_at) values (1, 'alice', now() - interval '1 day')",
      );
      const outlives = `select content_service.outlives_session('${await value(queue())}')`;
      expect(await value(outlives)).toBe(true);
      await rows("insert into auth.user_roles (user_id, role) values (1, 'admin')");
      expect(await value(outlives)).toBe(false);
    }));

  test.each([
    ["of a session, does not outlive the permissions of its user", { session_digest: "00" }, false],
    ["of a token, has those of the token", { session_digest: "00", iat: 1 }, true],
  ])("%s", (_, claims, expected) =>
    undone(async ({ value, rows }) => {
      await rows(
        "insert into auth.users (user_id, username, password_changed_at) values (1, 'alice', now() - interval '1 day')",
      );
      const id = await value(queue());
      await rows(
        `update content_service.tasks set caller = jsonb_set(caller::jsonb, '{claims}', auth.claims_of(1) || '${JSON.stringify(claims)}')
          where id = '${id}'`,
      );
      const outlives = `select content_service.outlives_session('${id}')`;
      expect(await value(outlives)).toBe(true);
      await rows(`insert into auth.permissions values ('notes:read', '');
        insert into auth.user_permissions (user_id, permission) values (1, 'notes:read')`);
      expect(await value(outlives)).toBe(expected);
    }),
  );

  test("belongs to the user, or to the role, and is seen by its owner and administrators", () =>
    undone(async ({ rows, value }) => {
      expect(await value(`select content_service.task_owner('authenticated', '{"sub": "7"}')`)).toBe("user 7");
      expect(await value("select content_service.task_owner('service_role', '{}')")).toBe("role service_role");
      expect(await value(`select content_service.task_lane('authenticated', '{"sub": "7"}')`)).toBe("caller");
      expect(await value("select content_service.task_lane('anon', '{}')")).toBe("anonymous");
      const sees = (owner: string) => value(`select content_service.sees_task('${owner}')`);
      expect(await sees("user 7")).toBe(true);
      await rows(`grant usage on schema content_service to authenticated; grant execute on function content_service.sees_task to authenticated;
        grant execute on function content_service.task_owner to authenticated; set local request.jwt.claims = '{"sub": "7"}';
        set local role authenticated`);
      expect([await sees("user 7"), await sees("user 8")]).toEqual([true, false]);
    }));
});

describe("a call that SQL queues", () => {
  const DEFINITIONS = `
    create function public.add(a integer, b integer default 2) returns integer language sql as 'select a + b';
    create function public.add(a integer, c text default '') returns integer language sql as 'select a';
    create function public.double(a integer) returns integer language sql as 'select 2 * a';
    grant execute on all functions in schema public to authenticated`;

  test("names its function, and arguments that fit one only", () =>
    undone(async ({ rows, value, refusal }) => {
      await rows(DEFINITIONS);
      expect(
        await rows(
          "select name, is_required from content_service.function_inputs('public.add(integer, integer)'::regprocedure)",
        ),
      ).toEqual([
        { name: "a", is_required: true },
        { name: "b", is_required: false },
      ]);
      const takes = (given: string) =>
        value(`select content_service.takes_arguments('public.double(integer)'::regprocedure, '${given}')`);
      expect([await takes('{"a": 1}'), await takes("{}"), await takes('{"a": 1, "z": 1}')]).toEqual([
        true,
        false,
        false,
      ]);
      const isAmbiguous = (given: string) =>
        value(`select content_service.is_ambiguous_call('public.add(integer, integer)'::regprocedure, '${given}')`);
      expect([await isAmbiguous('{"a": 1}'), await isAmbiguous('{"a": 1, "b": 2}')]).toEqual([true, false]);
      const callable = (name: string, given: string) =>
        `select content_service.callable_function('authenticated', '${name}', '${given}')::text`;
      expect(await value(callable("double", '{"a": 1}'))).toBe("double(integer)");
      expect(await refusal(callable("pg_catalog.now", "{}"))).toBe("NTFND");
      expect(await refusal(callable("double", '{"z": 1}'))).toBe("WRONG");
    }));

  test("becomes a statement with the arguments as a parameter", () =>
    undone(async ({ rows, value }) => {
      await rows(DEFINITIONS);
      const statement = String(
        await value(`select content_service.call_statement('public.double(integer)', '{"a": 21}')`),
      );
      expect(statement).toContain("public.double(a => given.a)");
      expect(await value(statement.replaceAll("$1", `'{"a": 21}'`))).toBe(42);
    }));

  test("runs as a role of requests alone", () =>
    undone(async ({ refusal }) => {
      const check = (role: string) => refusal(`select content_service.check_task_role('${role}')`);
      expect([await check("authenticated"), await check("postgres"), await check("nobody_here")]).toEqual([
        "none",
        "NOPER",
        "WRONG",
      ]);
    }));
});

describe("a schedule", () => {
  const SCHEDULE = `
    create function public.tidy() returns void language sql as 'select';
    grant execute on function public.tidy to service_role;
    insert into api.schedules (name, cron, function, role) values ('tidy', '0 3 * * *', 'public.tidy', 'service_role')`;

  test("is checked by its triggers, and its runs follow their tasks", () =>
    undone(async ({ rows, value, refusal }) => {
      await rows(SCHEDULE);
      expect(
        await rows(`select tgfoid::regproc::text as name from pg_trigger where tgname in (
      '_100_content_service_check_role', '_200_content_service_check', '_500_content_service_follow_run', '_500_content_service_end_run')
          and tgrelid in ('api.schedules'::regclass, 'content_service.tasks'::regclass) order by tgname`),
      ).toEqual(
        [
          "content_service.tg__check_schedule_role",
          "content_service.tg__check_schedule",
          "content_service.tg__follow_schedule_run",
          "content_service.tg__follow_schedule_run",
        ].map((name) => ({ name })),
      );
      expect(await refusal("update api.schedules set role = 'nobody_here'")).toBe("WRONG");
      expect(await refusal("update api.schedules set cron = '61 * * * *'")).toBe("WRONG");
      expect(await value("select content_service.cron_values('1-10/3,20', 'minute', 0, 59, null)")).toEqual([
        1, 4, 7, 10, 20,
      ]);
      expect(await value("select (content_service.schedule_fault(schedules)).message from api.schedules")).toBeNull();
      expect(await value("select content_service.start_schedule_run('tidy', '2026-01-01')")).toBe("queued");
      expect(await value("select content_service.start_schedule_run('tidy', '2026-01-01')")).toBeNull();
      expect(await value("select content_service.start_schedule_run('tidy', '2026-01-02')")).toBe("skipped");
      await rows("select content_service.begin_task('system')");
      expect(await value("select status from api.schedule_runs where task is not null")).toBe("running");
      await rows("delete from content_service.tasks");
      expect(await value("select status from api.schedule_runs where task is not null")).toBe("failed");
      await rows("drop function public.tidy()");
      expect(await value("select (content_service.schedule_fault(schedules)).message from api.schedules")).toContain(
        "public.tidy",
      );
    }));

  test("has its minutes processed once, and those that were missed are recorded", () =>
    undone(async ({ rows, value }) => {
      await rows(SCHEDULE);
      await rows("update content_service.schedule_clock set processed = now() - interval '5 minutes'");
      expect(
        await rows(
          "select was_set_back, until > processed as is_later from content_service.begin_schedule_minutes(now())",
        ),
      ).toEqual([{ was_set_back: false, is_later: true }]);
      const outcomes = `[{"name": "tidy", "due": "2026-01-03T03:00:00Z", "missed": ["2026-01-02T03:00:00Z"], "next": "2026-01-04T03:00:00Z"}]`;
      expect(
        await rows(`select * from content_service.record_schedule_minutes(date_trunc('minute', now()), '${outcomes}')`),
      ).toEqual([
        { schedule: "tidy", status: "missed", runs: "1" },
        { schedule: "tidy", status: "queued", runs: "1" },
      ]);
      expect(await value("select next_run_at = '2026-01-04T03:00:00Z' from api.schedules")).toBe(true);
    }));
});

test("responses that are kept for a caller are counted", () =>
  undone(async ({ rows }) => {
    await rows(`insert into content_service.kept_answers (id, sealed_answer, expires_at, caller_key, bytes)
      values (sha256('1'), 'a', now() + interval '1 hour', 'user 1', 10), (sha256('2'), 'b', now() + interval '1 hour', 'user 1', 5)`);
    const own = "select keys, bytes, uncounted from content_service.responses_of_caller('user 1')";
    expect(await rows(own)).toEqual([{ keys: "2", bytes: "15", uncounted: "2" }]);
    await rows("select content_service.count_responses('user 1')");
    expect(await rows(own)).toEqual([{ keys: "2", bytes: "15", uncounted: "0" }]);
  }));
