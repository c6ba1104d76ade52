import { runMigrations } from "graphile-worker";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { useContent } from "./content.ts";

const FUNCTIONS = `
  create schema app;
  grant usage on schema app to authenticated;
  create function public.add(a integer, b integer default 2) returns integer language sql as 'select a + b';
  create function public.add_all(variadic items integer[]) returns integer language sql as 'select 1';
  create function public.hidden() returns integer language sql as 'select 1';
  create function public.convert(value integer) returns text language sql as 'select value::text';
  create function public.convert(value text) returns text language sql as 'select value';
  create function public.pad(value integer) returns text language sql as 'select value::text';
  create function public.pad(value integer, width integer default 1) returns text language sql as 'select value::text';
  create function public.swap(value anyelement) returns anyelement language sql as 'select value';
  create function public.unnamed(integer) returns integer language sql as 'select 1';
  create function public.react() returns trigger language plpgsql as 'begin return null; end';
  create procedure public.proceed() language sql as 'select 1';
  create function app."Odd (name)"("A b" numeric, out x numeric) language sql as 'select "A b"';
  create schema closed;
  create function closed.act() returns integer language sql as 'select 1';
  grant execute on all routines in schema public, app, closed to authenticated, service_role;
  revoke execute on function public.hidden() from authenticated;
  create role queue_stranger nologin;
  grant usage on schema public to queue_stranger;
  grant execute on function public.add to queue_stranger;
`;

const content = useContent();

beforeAll(async () => {
  await runMigrations({ connectionString: content.database.ownerUrl });
  await content.owner.query(FUNCTIONS);
});
afterAll(() => content.owner.query("drop owned by queue_stranger; drop role queue_stranger"));

type QueuedTask = {
  readonly id: string;
  readonly owner: string;
  readonly caller: object;
  readonly function: string;
  readonly arguments: object;
};

/** Queues in the role and undoes it; returns the task. */
async function enqueue(role: string, values: readonly unknown[], claims: object | null = null): Promise<QueuedTask> {
  const { owner } = content;
  await owner.query("begin");
  try {
    await owner.query("select set_config('request.jwt.claims', $1, true), set_config('role', $2, true)", [
      claims === null ? "" : JSON.stringify(claims),
      role,
    ]);
    const placeholders = values.map((_, index) => `$${index + 1}`).join(", ");
    const { rows } = await owner.query(`select api.enqueue(${placeholders}) as id`, [...values]);
    await owner.query("reset role");
    return (await owner.query("select * from content_service.tasks where id = $1", [rows[0].id])).rows[0];
  } finally {
    await owner.query("rollback");
  }
}

describe("api.enqueue", () => {
  test("stores the role and the claims of the session", async () => {
    const claims = { sub: "7", role: "authenticated", org: 12 };
    expect(await enqueue("authenticated", ["add", { a: 1 }], claims)).toMatchObject({
      owner: "user 7",
      caller: { kind: "known", role: "authenticated", claims },
      function: "public.add(integer,integer)",
      arguments: { a: 1 },
    });
  });

  test("stores no claims where the session has none", async () => {
    expect(await enqueue("service_role", ["public.add", { a: 1 }])).toMatchObject({
      owner: "role service_role",
      caller: { role: "service_role", claims: null },
    });
  });

  test.each([
    ["add", { a: 1, b: 2 }, "public.add(integer,integer)"],
    ["public.add_all", { items: [1, 2] }, "public.add_all(integer[])"],
    ["public.convert(text)", { value: "1" }, "public.convert(text)"],
    ["public.pad ( int )", { value: 1 }, "public.pad(integer)"],
    ["public.pad(int, int)", { value: 1, width: 2 }, "public.pad(integer,integer)"],
    ['app."Odd (name)"', { "A b": 1 }, 'app."Odd (name)"(numeric)'],
    ['app."Odd (name)"(numeric)', { "A b": 1 }, 'app."Odd (name)"(numeric)'],
  ])("finds the function %s by its name and the names of the arguments", async (name, values, signature) => {
    expect(await enqueue("authenticated", [name, values])).toMatchObject({ function: signature });
  });

  test.each([
    "missing",
    "public.hidden",
    "closed.act",
    "public.add(text)",
    "public.add(no_type)",
    "content.public.add",
    "public.add(integer, integer",
    "add; select 1",
    "",
    "public.proceed",
    "public.react",
    "public.swap",
    "pg_catalog.set_config",
    "pg_catalog.query_to_xml",
    "information_schema._pg_truetypid",
    "extensions.similarity",
  ])("reports the same error for every function that cannot be queued: %s", async (name) => {
    await expect(enqueue("authenticated", [name])).rejects.toMatchObject({
      code: "NTFND",
      message: `There is no function ${name} that authenticated may call`,
      detail: "function",
      hint: expect.stringContaining("grant execute on function … to authenticated"),
    });
  });

  test.each([
    ["add", {}],
    ["add", { a: 1, c: 2 }],
    ["add", [1, 2]],
    ["add", 1],
    ["public.unnamed", { "": 1 }],
    ["public.unnamed", {}],
  ])("refuses arguments of %s that do not match its parameters: %j", async (name, values) => {
    await expect(enqueue("authenticated", [name, JSON.stringify(values)])).rejects.toMatchObject({
      code: "WRONG",
      detail: "arguments",
    });
  });

  test.each([
    ["public.convert", { value: 1 }],
    ["public.pad", { value: 1 }],
    ["public.pad(int, int)", { value: 1 }],
  ])("refuses a call that could mean several functions: %s %j", async (name, values) => {
    await expect(enqueue("authenticated", [name, values])).rejects.toMatchObject({ code: "WRONG", detail: "function" });
  });

  test.each([
    [["add", { a: 1 }, "infinity"], "run_at"],
    [["add", { a: 1 }, "2030-01-01", ""], "key"],
    [["add", { a: 1 }, "2030-01-01", "k".repeat(201)], "key"],
  ])("refuses values out of range: %j", async (values, detail) => {
    await expect(enqueue("authenticated", values)).rejects.toMatchObject({ code: "WRONG", detail });
  });

  test("is not granted to anonymous callers", async () => {
    await expect(enqueue("anon", ["add", { a: 1 }])).rejects.toMatchObject({ code: "42501" });
  });

  test("refuses the owner until a role is set", async () => {
    await expect(enqueue("none", ["add", { a: 1 }])).rejects.toMatchObject({
      code: "NOPER",
      hint: expect.stringContaining("set role service_role"),
    });
  });

  test("refuses a role that the login of the service cannot set, and says what to grant", async () => {
    await content.owner.query(
      "grant usage on schema api to queue_stranger; grant execute on function api.enqueue to queue_stranger",
    );
    await expect(enqueue("queue_stranger", ["add", { a: 1 }])).rejects.toMatchObject({
      code: "NOPER",
      hint: "Run once as the owner: grant queue_stranger to authenticator",
    });
    await content.owner.query("grant queue_stranger to authenticator");
    expect(await enqueue("queue_stranger", ["add", { a: 1 }])).toMatchObject({ owner: "role queue_stranger" });
  });

  test("queues no more than a thousand tasks of one caller", async () => {
    const { owner } = content;
    await owner.query("begin; set local role service_role");
    await owner.query("select api.enqueue('add', '{\"a\": 1}') from generate_series(1, 1000)");
    await expect(owner.query("select api.enqueue('add', '{\"a\": 1}')")).rejects.toMatchObject({ code: "TOMNY" });
    await owner.query("rollback");
  });
});

describe("a function that has other rights", () => {
  test("queues in the role of the caller, not in its owner's", async () => {
    const { owner } = content;
    await owner.query("begin");
    await owner.query(`
      create function public.queue_for_others() returns uuid language sql security definer as $$ select api.enqueue('add', '{"a": 1}') $$;
      grant execute on function public.queue_for_others to authenticated;
      set local role authenticated`);
    const { rows } = await owner.query("select public.queue_for_others() as id");
    await owner.query("reset role");
    const task = await owner.query("select owner, caller from content_service.tasks where id = $1", [rows[0].id]);
    expect(task.rows[0]).toMatchObject({ owner: "role authenticated", caller: { role: "authenticated" } });
    await owner.query("rollback");
  });
});

describe("a key", () => {
  const waiting = async () =>
    (await content.owner.query("select id, owner, arguments from content_service.tasks order by owner")).rows;

  test("replaces the waiting task of the same owner, which keeps its id, and no task of another", async () => {
    const { owner } = content;
    await owner.query("begin");
    const queue = async (sub: string, a: number) => {
      await owner.query("select set_config('request.jwt.claims', $1, true)", [JSON.stringify({ sub })]);
      const values = [{ a }, new Date(Date.now() + 3_600_000)];
      return (await owner.query("select api.enqueue('add', $1, $2, 'sum') as id", values)).rows[0].id;
    };
    await owner.query("set local role authenticated");
    const first = await queue("1", 1);
    const other = await queue("2", 2);
    expect(await queue("1", 3)).toBe(first);
    await owner.query("reset role");
    expect(await waiting()).toEqual([
      { id: first, owner: "user 1", arguments: { a: 3 } },
      { id: other, owner: "user 2", arguments: { a: 2 } },
    ]);
    const jobs = await owner.query("select key from graphile_worker.jobs order by key");
    expect(jobs.rows.map(({ key }) => key)).toEqual([first, other].sort());
    await owner.query("rollback");
  });

  test("is refused for callers without a user, who would replace each other's tasks, except where no policy binds them", async () => {
    const queue = ["add", { a: 1 }, new Date(), "sum"];
    for (const claims of [null, { org: 1 }, { sub: 7 }, { sub: "" }]) {
      await expect(enqueue("authenticated", queue, claims)).rejects.toMatchObject({ code: "WRONG", detail: "key" });
    }
    expect((await enqueue("service_role", queue)).owner).toBe("role service_role");
    expect((await enqueue("authenticated", ["add", { a: 1 }])).owner).toBe("role authenticated");
  });

  test("leaves a task that has begun, and the new one waits beside it", async () => {
    const { owner } = content;
    await owner.query("begin; set local role service_role");
    const queue = async () =>
      (await owner.query("select api.enqueue('add', '{\"a\": 1}', key => 'sum') as id")).rows[0].id;
    const first = await queue();
    await owner.query("reset role");
    expect((await owner.query("select id from content_service.begin_task('caller')")).rows).toEqual([{ id: first }]);
    await owner.query("set local role service_role");
    expect(await queue()).not.toBe(first);
    await owner.query("rollback");
  });
});

/** The rows of a statement in the role and with the claims, in the open transaction. */
async function asUser(role: string, sub: string | null, statement: string, values: readonly unknown[] = []) {
  const { owner } = content;
  const claims = sub === null ? "" : JSON.stringify({ sub });
  await owner.query("select set_config('request.jwt.claims', $1, true), set_config('role', $2, true)", [claims, role]);
  const { rows } = await owner.query(statement, [...values]);
  await owner.query("select set_config('role', 'none', true)");
  return rows;
}

const QUEUE_FOR_LATER = "select api.enqueue('add', '{\"a\": 1}', now() + interval '1 hour') as id";

describe("the tasks of a caller", () => {
  beforeEach(() => content.owner.query("begin"));
  afterEach(() => content.owner.query("rollback"));

  test("are read and listed by their user and by administrators only", async () => {
    const [{ id }] = await asUser("authenticated", "1", QUEUE_FOR_LATER);
    const read = (role: string, sub: string | null) => asUser(role, sub, "select * from api.read_task($1)", [id]);
    const list = async (role: string, sub: string | null) =>
      (await asUser(role, sub, "select * from api.list_tasks()")).map((task) => task.id);

    expect(await read("authenticated", "1")).toMatchObject([
      { work: "public.add(integer,integer)", status: "queued", progress: 0, result: null, error: null },
    ]);
    expect(await list("authenticated", "1")).toEqual([id]);
    expect(await list("admin", "3")).toEqual([id]);
    expect(await read("admin", "3")).toHaveLength(1);
    for (const [role, sub] of [
      ["authenticated", "2"],
      ["authenticated", null],
      ["service_role", null],
    ] as const) {
      expect(await read(role, sub)).toEqual([]);
      expect(await list(role, sub)).toEqual([]);
    }
  });

  test("are not listed for callers without a user, who share their role, except where no policy binds it", async () => {
    const list = "select id from api.list_tasks()";
    await asUser("authenticated", null, QUEUE_FOR_LATER);
    expect(await asUser("authenticated", null, list)).toEqual([]);
    const queued = await asUser("service_role", null, QUEUE_FOR_LATER);
    expect(await asUser("service_role", null, list)).toEqual(queued);
  });

  test("are cancelled by their user while they wait", async () => {
    const [{ id }] = await asUser("authenticated", "1", QUEUE_FOR_LATER);
    const cancel = async (sub: string) =>
      (await asUser("authenticated", sub, "select api.cancel_task($1) as done", [id]))[0].done;
    expect(await cancel("2")).toBe(false);
    expect(await cancel("1")).toBe(true);
    expect(await cancel("1")).toBe(false);
    expect((await content.owner.query("select from content_service.tasks")).rowCount).toBe(0);
    expect((await content.owner.query("select from graphile_worker.jobs")).rowCount).toBe(0);
  });

  test("are not cancelled once they have begun", async () => {
    const [{ id }] = await asUser("authenticated", "1", "select api.enqueue('add', '{\"a\": 1}') as id");
    const { rows } = await content.owner.query("select id from content_service.begin_task('caller')");
    expect(rows).toEqual([{ id }]);
    expect(await asUser("authenticated", "1", "select api.cancel_task($1) as done", [id])).toEqual([{ done: false }]);
  });
});

describe("api.enqueue_as", () => {
  beforeEach(() => content.owner.query("begin"));
  afterEach(() => content.owner.query("rollback"));

  test("queues in the role that a function of the owner names, and the user whose request it was does not own the task", async () => {
    const { owner } = content;
    await owner.query(`
      create function public.queue_as_service() returns uuid language sql security definer
        as $$ select api.enqueue_as('service_role', 'public.hidden') $$;
      grant execute on function public.queue_as_service to authenticated`);
    const [{ id }] = await asUser("authenticated", "1", "select public.queue_as_service() as id");
    expect((await owner.query("select owner, caller from content_service.tasks where id = $1", [id])).rows).toEqual([
      { owner: "role service_role", caller: { kind: "known", role: "service_role", claims: null } },
    ]);
    expect(await asUser("authenticated", "1", "select from api.read_task($1)", [id])).toEqual([]);
  });

  test("does not queue as the owner", async () => {
    const attempt = content.owner.query("select api.enqueue_as('postgres', 'public.hidden')");
    await expect(attempt).rejects.toMatchObject({ code: "NOPER" });
  });
});

test.each(["anon", "authenticated", "admin", "service_role"])(
  "%s can neither queue in another role nor reach tasks but through the functions of schema api",
  async (role) => {
    const { owner } = content;
    for (const statement of [
      "select content_service.queue_call('service_role', null, 'add', '{\"a\": 1}')",
      "select api.enqueue_as('service_role', 'add', '{\"a\": 1}')",
      "insert into content_service.tasks default values",
      "select from content_service.tasks",
      "update content_service.tasks set caller = '{}'",
      "delete from content_service.tasks",
      "select content_service.finish_task('', '')",
      "select graphile_worker.add_job('perform')",
    ]) {
      await owner.query("begin");
      await owner.query(`set local role ${role}`);
      await expect(owner.query(statement), statement).rejects.toMatchObject({ code: "42501" });
      await owner.query("rollback");
    }
  },
);
