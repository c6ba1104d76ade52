import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import {
  adaptSteps,
  type BatchStep,
  type GroupedStatement,
  isOwnStep,
  makeGroupSteps,
  makeOpeningSteps,
  makeRequestSteps,
  withEnd,
} from "../../../postgres/database/batch-steps.ts";
import { type Database, openDatabase } from "../../../postgres/database/database.ts";
import { failedStatementOf } from "../../../postgres/database/database-errors.ts";
import { BECOME_CALLER, BECOME_LOGIN } from "../../../postgres/database/login-role.ts";
import { ResponseBudget } from "../../../postgres/database/response-budget.ts";
import type { Statement, StatementContext } from "../../../postgres/database/statement.ts";
import { StatementShape } from "../../../postgres/database/statement-shape.ts";
import { useFixture } from "../../fixture.ts";
import { openWire } from "../../postgres-wire.ts";
import { until } from "../../until.ts";
import { alice, commonOptions, open, PID, sql } from "./open.ts";

const SCHEMA = `
  create table entries (id int primary key, note text check (note <> 'refused'));
  create table labels (name text constraint label_taken unique deferrable initially deferred);
  create function remember() returns text language sql
    as $$ select set_config('app.seen', current_setting('request.path', true), true) $$;
  create function leave_behind() returns text language sql
    as $$ select set_config('app.left', 'behind', false) || set_config('app.left_too', 'behind', true) $$;
  grant all on entries, labels to authenticated;
`;

/** The message of the protocol that ends a transaction, or its part. */
const SYNC = "S\0\0\0\x04";

let database: Database;
const opened = useFixture(() => open(SCHEMA, { poolSize: 4 }));
beforeAll(async () => {
  database = opened.database;
});
beforeEach(() => opened.owner.query("truncate entries, labels"));

const insert = (id: number, note: string | null = null) =>
  sql("insert into entries values ($1, $2) returning id", String(id), note);
const label = (name: string) => sql("insert into labels values ($1)", name);
const stored = async () => (await opened.owner.query("select id from entries order by id")).rows.map(({ id }) => id);
const openTransactions = async () =>
  (
    await opened.owner.query(
      "select count(*)::int as n from pg_stat_activity where datname = current_database() and state like 'idle in%'",
    )
  ).rows[0].n;
const at = (path: string, context: StatementContext = alice): StatementContext => ({
  ...context,
  settings: [...context.settings, ["request.path", path]],
});
const PATH = "select current_setting('request.path', true), current_user";

const sessionOf = async (mark: string): Promise<number> => {
  const find = async () =>
    (
      await opened.owner.query(
        "select pid from pg_stat_activity where datname = current_database() and state = 'active' and query like '%' || $1 || '%' and pid <> pg_backend_pid()",
        [mark],
      )
    ).rows[0]?.pid;
  await until(async () => (await find()) !== undefined);
  return find();
};

type SendGroup = (statements: readonly GroupedStatement[]) => Promise<readonly { rows: readonly unknown[] }[]>;

const WAYS: readonly [name: string, send: SendGroup][] = [
  ["runTogether", (statements) => database.runTogether(alice, statements)],
  [
    "a transaction that is one group",
    (statements) => database.transaction(alice, (_, together) => together(statements, { end: "commit" })),
  ],
  [
    "a later group of a transaction",
    (statements) =>
      database.transaction(alice, async (query, together) => {
        await query(sql("select 1"));
        return together(statements, { end: "commit" });
      }),
  ],
  [
    "a group of a transaction that is committed by itself",
    (statements) => database.transaction(alice, (_, together) => together(statements)),
  ],
];

describe.each(WAYS)("statements sent together by %s", (_name, send) => {
  test("take effect in order, each with its rows, and see the ones before", async () => {
    const count = sql("select count(*) from entries");
    const results = await send([
      insert(1),
      count,
      insert(2),
      insert(3),
      count,
      sql("delete from entries where id = 1"),
    ]);
    expect(results.map(({ rows }) => rows)).toEqual([[["1"]], [["1"]], [["2"]], [["3"]], [["3"]], []]);
    expect(await stored()).toEqual([2, 3]);
    expect(await openTransactions()).toBe(0);
  });

  test("have no effect if one fails, whose index the error has", async () => {
    for (let index = 0; index < 4; index++) {
      const statements = [1, 2, 3, 4].map((id) => insert(id, id === index + 1 ? "refused" : null));
      const error = await send(statements).catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ code: "23514" });
      expect(failedStatementOf(error)).toBe(index);
      expect(await stored()).toEqual([]);
    }
    expect(await openTransactions()).toBe(0);
    expect(await send([insert(1)])).toMatchObject([{ rows: [["1"]] }]);
  });

  test("fail without an index at the commit, if a deferred constraint is violated", async () => {
    const error = await send([insert(1), label("a"), label("a"), insert(2)]).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ constraint: "label_taken" });
    expect(failedStatementOf(error)).toBeNull();
    expect(await stored()).toEqual([]);
  });

  test("have settings of their own, without what the ones before have set", async () => {
    const left =
      "select current_setting('app.left', true), current_setting('app.left_too', true), current_setting('app.seen', true)";
    const results = await send([
      { ...sql(PATH), context: at("/first") },
      { ...sql(`${PATH}, leave_behind()`), context: at("/second"), before: sql("select remember()") },
      { ...sql(`${left}, current_setting('request.path', true)`), context: at("/third") },
      sql(PATH),
    ]);
    expect(results.map(({ rows }) => rows[0])).toEqual([
      ["/first", "authenticated"],
      ["/second", "authenticated", "behindbehind"],
      ["", "", "", "/third"],
      ["/third", "authenticated"],
    ]);
  });

  test("have the index of the statement whose settings or preceding statement were refused", async () => {
    const refused = { ...alice, settings: [["work_mem", "none"]] } as const;
    const bySettings = await send([insert(1), { ...insert(2), context: refused }]).catch((thrown: unknown) => thrown);
    expect([failedStatementOf(bySettings), bySettings]).toMatchObject([1, { code: "22023" }]);
    const before = sql("select 1 / 0");
    const byPreceding = await send([insert(1), insert(2), { ...insert(3), before }]).catch((thrown: unknown) => thrown);
    expect([failedStatementOf(byPreceding), byPreceding]).toMatchObject([2, { code: "22012" }]);
    expect(await stored()).toEqual([]);
  });
});

describe.each(WAYS.filter(([name]) => !name.includes("later")))("statements sent together by %s", (_name, send) => {
  test("run again if a prepared statement is outdated", async () => {
    await opened.owner.query("drop table if exists changing; create table changing (a int)");
    await opened.owner.query("grant all on changing to authenticated");
    const read = sql("select * from changing");
    for (let id = 1; id < 4; id++) await send([insert(id), read]);
    await opened.owner.query("alter table changing alter a type text");
    expect(await send([insert(4), read])).toMatchObject([{ rows: [["4"]] }, { rows: [] }]);
    expect(await stored()).toEqual([1, 2, 3, 4]);
  });
});

describe.each(WAYS.slice(0, 3))("statements sent together by %s", (_name, send) => {
  test("leave an unknown outcome if the connection is lost after they were sent", async () => {
    const outcome = expect(send([insert(1), sql("select pg_sleep(30) -- lost here"), insert(2)])).rejects;
    const unknown = outcome.toMatchObject({ kind: "unavailable", code: "08007" });
    await opened.owner.query("select pg_terminate_backend($1)", [await sessionOf("lost here")]);
    await unknown;
    expect(await stored()).toEqual([]);
  });
});

describe("statements run together", () => {
  test("are rolled back on request, after their deferred constraints were checked", async () => {
    const results = await database.runTogether(alice, [insert(1), insert(2)], { rollback: true });
    expect(results.map(({ rows }) => rows)).toEqual([[["1"]], [["2"]]]);
    const taken = database.runTogether(alice, [label("a"), label("a")], { rollback: true });
    await expect(taken).rejects.toMatchObject({ constraint: "label_taken" });
    const failed = await database
      .runTogether(alice, [insert(1), insert(1)], { rollback: true })
      .catch((error: unknown) => error);
    expect([failedStatementOf(failed), failed]).toMatchObject([1, { code: "23505" }]);
    expect(await stored()).toEqual([]);
  });

  test("may be none", async () => {
    expect(await database.runTogether(alice, [])).toEqual([]);
  });

  test("follow a statement whose result is of no interest", async () => {
    const before = sql("select set_config('app.seen', 'before', true)");
    const seen = sql("select current_setting('app.seen')");
    const results = await database.runTogether(alice, [seen, insert(1)], { before });
    expect(results.map(({ rows }) => rows)).toEqual([[["before"]], [["1"]]]);
  });

  test("have one budget of bytes, beyond which nothing is changed if nothing was to be", async () => {
    const wide: Statement = sql("select repeat('x', 6000)");
    const options = { rollback: true, budget: new ResponseBudget(10_000) };
    await expect(database.runTogether(alice, [wide, wide], options)).rejects.toMatchObject({
      code: "ANSWER_TOO_LARGE",
    });
    expect(
      await database.runTogether(alice, [wide], { rollback: true, budget: new ResponseBudget(10_000) }),
    ).toHaveLength(1);
  });

  test("return large values as Buffers on request", async () => {
    const large = sql("select repeat('x', 40000), 'short'");
    const [result] = await database.runTogether(alice, [large], { largeValues: "buffer" });
    expect(result!.rows[0]).toEqual([Buffer.alloc(40_000, "x"), "short"]);
  });

  test("name the table that one of them waits for, if its lock times out", async () => {
    await using brief = await open("create table locked (id int); grant all on locked to authenticated", {
      lockTimeout: 100,
    });
    await brief.owner.query("begin; lock table locked");
    const waiting = brief.database.runTogether(alice, [
      sql("select 1"),
      sql('insert into "public"."locked" values (1)'),
    ]);
    const error = await waiting.catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "55P03", table: "locked" });
    expect(failedStatementOf(error)).toBe(1);
    await brief.owner.query("rollback");
  });
});

describe("groups of one transaction", () => {
  test("see each other's rows, and are committed with the last one", async () => {
    const results = await database.transaction(alice, async (_, together) => {
      const [first] = await together([insert(1), insert(2)]);
      expect(await stored()).toEqual([]);
      const rest = await together([sql("select count(*) from entries"), insert(3)], { end: "commit" });
      return [first!.rows, ...rest.map(({ rows }) => rows)];
    });
    expect(results).toEqual([[["1"]], [["2"]], [["3"]]]);
    expect(await stored()).toEqual([1, 2, 3]);
  });

  test("are rolled back together if a later one fails", async () => {
    const work = database.transaction(alice, async (_, together) => {
      await together([insert(1), insert(2)]);
      await together([insert(3), insert(1)], { end: "commit" });
    });
    const error = await work.catch((thrown: unknown) => thrown);
    expect([failedStatementOf(error), error]).toMatchObject([1, { code: "23505" }]);
    expect(await stored()).toEqual([]);
    expect(await openTransactions()).toBe(0);
  });

  test("are rolled back on request, after their deferred constraints were checked", async () => {
    const trial = (...statements: Statement[]) =>
      database.transaction(alice, async (_, together) => {
        await together([insert(1)]);
        return together(statements, { end: "checked" });
      });
    expect((await trial(insert(2)))[0]!.rows).toEqual([["2"]]);
    await expect(trial(label("a"), label("a"))).rejects.toMatchObject({ constraint: "label_taken" });
    expect(await stored()).toEqual([]);
    expect(await openTransactions()).toBe(0);
  });

  test("accept nothing after the end", async () => {
    const work = database.transaction(alice, async (query, together) => {
      await together([insert(1)], { end: "commit" });
      await query(insert(2));
    });
    await expect(work).rejects.toThrow("The transaction is over");
    expect(await stored()).toEqual([1]);
  });

  test("are refused while nothing is committed if they exceed the budget, and reported as made if something is", async () => {
    const wide = sql("select repeat('x', 6000)");
    const run = (end: "commit" | null) =>
      database.transaction(alice, (_, together) =>
        together([insert(1), wide, wide], { end, budget: new ResponseBudget(10_000) }),
      );
    await expect(run(null)).rejects.toMatchObject({ code: "ANSWER_TOO_LARGE", details: "Nothing was changed." });
    expect(await stored()).toEqual([]);
    await expect(run("commit")).rejects.toMatchObject({ message: expect.stringContaining("The change was made") });
    expect(await stored()).toEqual([1]);
  });

  test("have settings of their own across groups", async () => {
    const paths = await database.transaction(at("/own"), async (_, together) => {
      const [own, first] = await together([sql(PATH), { ...sql(PATH), context: at("/first") }]);
      const [still, second] = await together([sql(PATH), { ...sql(PATH), context: at("/second") }], { end: "commit" });
      return [own, first, still, second].map((result) => result!.rows[0]![0]);
    });
    expect(paths).toEqual(["/own", "/first", "/first", "/second"]);
  });

  test("have what is left of the statement timeout, if it holds for all of them, whatever their settings are", async () => {
    const nap = sql("select pg_sleep(0.3)");
    const work = database.transaction(
      alice,
      async (_, together) => {
        await together([insert(1), nap]);
        return together([{ ...nap, context: at("/second") }], { end: "commit" });
      },
      { isTimedAsOne: true, timeoutMs: 500 },
    );
    const error = await work.catch((thrown: unknown) => thrown);
    expect([failedStatementOf(error), error]).toMatchObject([0, { code: "57014" }]);
    expect(await stored()).toEqual([]);
  });
});

test.each(["runTogether", "a transaction"])("statements are sent by %s in one write, with one Sync", async (name) => {
  const writes: string[] = [];
  const wire = await openWire(opened.url, { listen: () => (sent) => void writes.push(sent.toString("latin1")) });
  const log = { info() {}, warn() {} };
  const ownerUrl = opened.url;
  const tapped = openDatabase({ url: wire.url, ownerUrl, log, poolSize: 1, ...commonOptions.current });
  const statements = [insert(1, "sent"), { ...insert(2, "sent"), context: at("/second") }, insert(3, "sent")];
  const send = () =>
    name === "runTogether"
      ? tapped.runTogether(alice, statements)
      : tapped.transaction(alice, (_, together) => together(statements, { end: "commit" }));
  for (let round = 0; round < 2; round++) {
    await opened.owner.query("truncate entries");
    writes.length = 0;
    await send();
    expect(await stored()).toEqual([1, 2, 3]);
    const ours = writes.filter((text) => text.includes("sent"));
    expect(ours.map((text) => [text.split("sent").length - 1, text.split(SYNC).length - 1])).toEqual([[3, 1]]);
  }
  await tapped.close();
  await wire.close();
});

describe("with settings by statements", () => {
  const byStatements = { isExplicit: true, keepsSettings: true, settingMode: "distributed" } as const;
  const limits = { readOnly: true, statementTimeout: 0, lockTimeout: 0, timeoutMs: undefined };
  const shapeOf = ({ text }: Statement) => new StatementShape(text);
  const textsOf = (steps: readonly BatchStep[]) => steps.map(({ shape }) => shape.text);

  test("each setting of a request has a statement of its own between BEGIN and its statement, and Citus passes it on", () => {
    const context: StatementContext = { role: "o'hara", settings: [["request.path", "/it's\\"]] };
    const steps = makeRequestSteps(new StatementShape("select 1"), sql("select 1"), context, { ...limits, before: [] });
    const adapted = adaptSteps({ steps, main: 2, mainCount: 1 }, byStatements);
    expect(textsOf(adapted.steps)).toEqual([
      "begin",
      "reset all",
      "set local citus.propagate_set_commands = 'local'",
      `set local "role" = 'o''hara'`,
      `set local "statement_timeout" = '0'`,
      `set local "lock_timeout" = '0'`,
      `set local "transaction_read_only" = 'on'`,
      String.raw`set local "request.path" =  E'/it''s\\'`,
      "select 1",
      "commit",
    ]);
    expect(adapted.steps[adapted.main]!.shape.text).toBe("select 1");
  });

  test("the role is changed for a statement of the login, and back, by SET LOCAL", () => {
    const statements = [insert(1), BECOME_LOGIN, BECOME_CALLER];
    const steps = makeGroupSteps(statements, alice, shapeOf, limits);
    const texts = textsOf(adaptSteps({ steps, main: 0, mainCount: steps.length }, byStatements).steps);
    expect(texts).toEqual([
      insert(1).text,
      expect.stringContaining("set local role none"),
      expect.stringContaining("'set local role %I'"),
    ]);
  });

  test("the names of a search path are set one by one", () => {
    const settings = [
      ["search_path", `"it's", Public,"a ""b"""`],
      ["search_path", ""],
    ] as const;
    const steps = makeGroupSteps([{ ...sql("select 1"), context: { role: "anon", settings } }], alice, shapeOf, limits);
    const texts = textsOf(adaptSteps({ steps, main: 0, mainCount: steps.length }, byStatements).steps);
    expect(texts.filter((text) => text.includes("search_path"))).toEqual([
      `set local "search_path" = 'it''s', 'public', 'a "b"'`,
      `set local "search_path" = ''`,
    ]);
  });

  test("statements of a group lose no position by the steps that are added", () => {
    const statements = [insert(1), { ...sql("select 2"), context: at("/second") }, { ...sql("select 3"), before: PID }];
    const opening = makeOpeningSteps(alice, limits, undefined);
    const grouped = makeGroupSteps(statements, alice, shapeOf, limits);
    const batch = {
      steps: [...opening, ...withEnd(grouped, "commit")],
      main: opening.length,
      mainCount: grouped.length,
    };
    const { steps, main, mainCount } = adaptSteps(batch, byStatements);
    const own = steps.slice(main, main + mainCount).filter(isOwnStep);
    expect(textsOf(own)).toEqual([insert(1).text, "select 2", "select 3"]);
  });
});

describe("through a router that refuses RESET ALL", () => {
  test("statements of a group lose no position by the steps that are left out", () => {
    const limits = { readOnly: false, statementTimeout: 0, lockTimeout: 0, timeoutMs: undefined };
    const shapeOf = ({ text }: Statement) => new StatementShape(text);
    const statements = [insert(1), { ...sql("select 2"), context: at("/second") }, { ...sql("select 3"), before: PID }];
    const opening = makeOpeningSteps(alice, limits, undefined);
    const grouped = makeGroupSteps(statements, alice, shapeOf, limits);
    const steps = [...opening, ...withEnd(grouped, "commit")];
    const batch = { steps, main: opening.length, mainCount: grouped.length };
    const adapted = adaptSteps(batch, { isExplicit: true, keepsSettings: false, settingMode: "function" });
    const texts = adapted.steps.map(({ shape }) => shape.text);
    expect(texts.filter((text) => text === "reset all")).toEqual([]);
    const main = adapted.steps.slice(adapted.main, adapted.main + adapted.mainCount);
    expect(main.filter(isOwnStep).map(({ shape }) => shape.text)).toEqual([insert(1).text, "select 2", "select 3"]);
    expect([texts[0], texts.at(-1)]).toEqual(["begin", "commit"]);
  });
});
