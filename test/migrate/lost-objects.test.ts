import { expect, test } from "vitest";
import { bringUpToDate, runMigrations } from "../../migrate/migrate.ts";
import { type OwnHistories, ownHistories } from "./own-histories.ts";

const PROJECT = `create table public.tags (id int primary key, name text, article_id bigint references public.articles);
create function public.nothing() returns void language sql as 'select';
grant execute on function public.nothing to service_role;`;

const start = (
  { settings, requestUrl }: OwnHistories,
  isOwnDatabase: boolean,
  report: (line: string) => void = () => {},
) => bringUpToDate({ settings, requestUrl, isOwnDatabase, report });

async function migrated(): Promise<OwnHistories> {
  const own = await ownHistories(["platform", "content"], { isMigrated: true });
  await own.add("project", "tags", PROJECT);
  await runMigrations({ name: "migrate" }, own.settings);
  return own;
}

test("a start names what a cleaning script has dropped, and the migration creates it again", async () => {
  await using own = await migrated();
  await own.rows("drop schema content_service cascade");
  await expect(start(own, false)).rejects.toThrow(
    /lost \d+ objects that its migrations created \(content_service, content_service\..+, …\)\. .*npm run migrate.* creates them again/,
  );
  await runMigrations({ name: "migrate" }, own.settings);
  expect(await start(own, false)).toMatchObject({ kind: "current" });
  const bounds =
    "select content_service.bound('tasks of a caller')::int as bound, count(*)::int from content_service.task_lanes";
  expect(await own.rows(bounds)).toEqual([{ bound: 1000, count: 3 }]);
  await own.rows("insert into public.users (name, email) values ('Ada', 'ada@example.com')");
  const updated = "update public.users set name = 'Eve' returning updated_at > created_at as is_later";
  expect(await own.rows(updated)).toEqual([{ is_later: true }]);
  expect(await own.rows("select * from public.search('nothing')")).toEqual([]);
});

test("the service's own database is repaired by its start", async () => {
  await using own = await migrated();
  await own.rows("drop schema auth cascade");
  const reported: string[] = [];
  expect(await start(own, true, (line) => reported.push(line))).toMatchObject({ kind: "current" });
  expect(reported.join()).toMatch(/lost \d+ objects .*auth/);
  expect(await start(own, false)).toMatchObject({ kind: "current" });
  const signUp = "insert into public.users (name, email) values ('Ada', 'ada@example.com')";
  await own.rows(signUp);
  expect(await own.rows("select auth.uid() as caller, count(*)::int as accounts from auth.users")).toEqual([
    { caller: null, accounts: 0 },
  ]);
});

test("a single function is created again, and those that the project has replaced or dropped stay", async () => {
  await using own = await ownHistories(["platform", "content"], { isMigrated: true });
  await own.add(
    "project",
    "mine",
    `create or replace function auth.account_faults(name text, email text, age integer, username text)
       returns setof public.field_error language sql as 'select null::public.field_error limit 0';
     drop function api.report_progress(integer);`,
  );
  await runMigrations({ name: "migrate" }, own.settings);
  expect(await start(own, false)).toMatchObject({ kind: "current" });
  const source = "select prosrc from pg_proc where proname = 'account_faults'";
  const before = await own.rows(source);
  await own.rows("drop function content_service.bound");
  await expect(start(own, false)).rejects.toThrow(
    "lost 1 objects that its migrations created (content_service.bound).",
  );
  await runMigrations({ name: "migrate" }, own.settings);
  expect(await start(own, false)).toMatchObject({ kind: "current" });
  expect(await own.rows(source)).toEqual(before);
  expect(await own.rows("select from pg_proc where proname = 'report_progress'")).toEqual([]);
});

test("a function of a grant that names a dropped one is created again, with its grant", async () => {
  await using own = await migrated();
  await own.rows("drop function content_service.keep_file(text, bigint)");
  await expect(start(own, false)).rejects.toThrow(
    "lost 1 objects that its migrations created (content_service.keep_file)",
  );
  await runMigrations({ name: "migrate" }, own.settings);
  expect(await start(own, false)).toMatchObject({ kind: "current" });
  const granted =
    "select has_function_privilege('authenticator', 'content_service.keep_file(text, bigint)', 'execute') as may_keep, " +
    "to_regproc('content_service.signed_object') as dropped";
  expect(await own.rows(granted)).toEqual([{ may_keep: true, dropped: null }]);
});
