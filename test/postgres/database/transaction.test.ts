import { beforeAll, describe, expect, test } from "vitest";
import type { Database } from "../../../postgres/database/database.ts";
import { ContextError } from "../../../postgres/database/database-errors.ts";
import type { QueryInTransaction } from "../../../postgres/database/transaction.ts";
import { useFixture } from "../../fixture.ts";
import { alice, anon, caller, open, PID, sql } from "./open.ts";

const SCHEMA = `
  create table accounts (id int primary key, balance int not null check (balance >= 0));
  create table labels (name text constraint label_taken unique deferrable initially deferred);
  create table slow_labels (name text);
  create function pause() returns trigger language plpgsql as $$ begin perform pg_sleep(0.25); return null; end $$;
  create constraint trigger slow after insert on slow_labels deferrable initially deferred for each row execute function pause();
  grant all on accounts, labels, slow_labels to authenticated;
`;

let database: Database;
const opened = useFixture(() => open(SCHEMA));
beforeAll(async () => {
  database = opened.database;
});

const insert = (id: number, balance = 0) =>
  sql("insert into accounts values ($1, $2) returning id", String(id), String(balance));
const stored = async () => (await opened.owner.query("select id from accounts order by id")).rows.map(({ id }) => id);
const openTransactions = async () =>
  (
    await opened.owner.query(
      "select count(*)::int as n from pg_stat_activity where datname = current_database() and state like 'idle in%'",
    )
  ).rows[0].n;

describe("a transaction", () => {
  test("belongs to one caller and one session, from the first statement to the commit", async () => {
    const seen = await database.transaction(alice, async (query) => {
      await query(insert(1));
      expect(await stored()).not.toContain(1);
      const { rows } = await query(sql("select id, current_user, current_setting('request.jwt.claims') from accounts"));
      return rows;
    });
    expect(seen).toEqual([["1", "authenticated", alice.settings[0]![1]]]);
    expect(await stored()).toContain(1);
    expect(await openTransactions()).toBe(0);
  });

  test("is rolled back when the work fails, with its error", async () => {
    const work = async (query: QueryInTransaction) => {
      await query(insert(2));
      throw new Error("changed my mind");
    };
    await expect(database.transaction(alice, work)).rejects.toThrow("changed my mind");
    expect(await stored()).not.toContain(2);
    expect(await openTransactions()).toBe(0);
  });

  test("is rolled back even if an error is ignored", async () => {
    const work = async (query: QueryInTransaction) => {
      await query(insert(3));
      await query(insert(3)).catch(() => {});
      return "all is well";
    };
    await expect(database.transaction(alice, work)).rejects.toMatchObject({ code: "23505" });
    expect(await stored()).not.toContain(3);
  });

  test("can continue after a savepoint", async () => {
    await database.transaction(alice, async (query) => {
      await query(insert(4));
      await query(sql("savepoint before"));
      await query(insert(4)).catch(() => {});
      await query(sql("rollback to savepoint before"));
      await query(insert(5));
    });
    expect(await stored()).toEqual(expect.arrayContaining([4, 5]));
  });

  test("checks deferred constraints at its commit", async () => {
    const work = async (query: QueryInTransaction) => {
      await query(sql("insert into labels values ('a')"));
      await query(sql("insert into labels values ('a')"));
    };
    await expect(database.transaction(alice, work)).rejects.toMatchObject({ constraint: "label_taken" });
    expect((await opened.owner.query("select * from labels")).rowCount).toBe(0);
    expect(await openTransactions()).toBe(0);
  });

  test("sends statements that do not depend on each other without waiting", async () => {
    const rows = await database.transaction(alice, (query) =>
      Promise.all([query(insert(6)), query(insert(7)), query(sql("select count(*) from accounts where id in (6, 7)"))]),
    );
    expect(rows[2].rows).toEqual([["2"]]);
  });

  test("commits statements that were not awaited too, or fails with them", async () => {
    await database.transaction(alice, async (query) => void query(insert(8)));
    expect(await stored()).toContain(8);
    const forgetful = async (query: QueryInTransaction) => void query(insert(8)).catch(() => {});
    await expect(database.transaction(alice, forgetful)).rejects.toMatchObject({ code: "23505" });
  });

  test("refuses queries when it has ended", async () => {
    let escaped: QueryInTransaction | undefined;
    await database.transaction(alice, async (query) => {
      escaped = query;
    });
    await expect(escaped!(insert(9))).rejects.toThrow("The transaction is over");
    expect(await stored()).not.toContain(9);
  });

  test("may be read-only, and may set a stricter isolation level", async () => {
    const write = (query: QueryInTransaction) => query(insert(10));
    await expect(database.transaction(alice, write, { readOnly: true })).rejects.toMatchObject({ code: "25006" });
    const level = (query: QueryInTransaction) => query(sql("select current_setting('transaction_isolation')"));
    expect((await database.transaction(alice, level, { isolation: "serializable" })).rows).toEqual([["serializable"]]);
    expect((await database.transaction(alice, level)).rows).toEqual([["read committed"]]);
  });

  test("limits the time of each statement", async () => {
    const work = (query: QueryInTransaction) => query(sql("select pg_sleep(10)"));
    await expect(database.transaction(alice, work, { timeoutMs: 50 })).rejects.toMatchObject({ code: "57014" });
  });

  test("limits the time of all statements and the commit together", async () => {
    const options = { isTimedAsOne: true, timeoutMs: 400 };
    const pause = sql("select pg_sleep(0.25)");
    const twice = async (query: QueryInTransaction) => {
      await query(pause);
      await query(pause);
    };
    await expect(database.transaction(alice, twice, options)).rejects.toMatchObject({ code: "57014" });
    await database.transaction(alice, twice, { timeoutMs: 400 });
    const slowCommit = async (query: QueryInTransaction) => {
      await query(pause);
      await query(sql("insert into slow_labels values ('slow')"));
    };
    await expect(database.transaction(alice, slowCommit, options)).rejects.toMatchObject({ code: "57014" });
    expect((await opened.owner.query("select from slow_labels")).rows).toEqual([]);
    await database.transaction(alice, slowCommit, { timeoutMs: 400 });
    expect((await opened.owner.query("select from slow_labels")).rows).toHaveLength(1);
    expect(await openTransactions()).toBe(0);
  });

  test("of an unknown role fails as such, whatever the first statement", async () => {
    const work = (query: QueryInTransaction) => Promise.all([query(PID), query(PID)]);
    await expect(database.transaction(caller("nobody"), work)).rejects.toBeInstanceOf(ContextError);
    expect(await openTransactions()).toBe(0);
  });

  test("without statements uses no round trip", async () => {
    expect(await database.transaction(caller("nobody"), async () => "nothing")).toBe("nothing");
  });

  test("restarts if its first statement was prepared before the table changed", async () => {
    await opened.owner.query("create table shifting as select 1 as a; grant all on shifting to authenticated");
    const all = (query: QueryInTransaction) => query(sql("select * from shifting"));
    await database.transaction(alice, all);
    await opened.owner.query("alter table shifting add b int default 2");
    expect((await database.transaction(alice, all)).rows).toEqual([["1", "2"]]);
  });

  test("restarts if its connection was lost before its first response", async () => {
    const MARK = "-- first answer";
    const killing = (async () => {
      for (;;) {
        const { rows } = await opened.owner.query<{ pid: number }>(
          "select pid, pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and query like '%' || $1 and state = 'active'",
          [MARK],
        );
        if (rows[0]) return String(rows[0].pid);
      }
    })();
    const pids = await database.transaction(alice, async (query) => {
      const answers = await Promise.all([query(sql(`select pg_sleep(0.1), pg_backend_pid() ${MARK}`)), query(PID)]);
      await query(insert(13));
      return [answers[0].rows[0]![1], answers[1].rows[0]![0]];
    });
    expect(pids[0]).not.toBe(await killing);
    expect(pids[1]).toBe(pids[0]);
    expect(await stored()).toContain(13);
  });

  test("cannot be ended by a statement, after which others would run as the login", async () => {
    for (const end of ["commit", "rollback"]) {
      const seen: unknown[] = [];
      const work = async (query: QueryInTransaction) => {
        await query(PID);
        await query(sql(end)).catch((error) => seen.push(error.code));
        await query(sql("select current_user")).then(
          ({ rows }) => seen.push(rows),
          () => seen.push("refused"),
        );
      };
      await expect(database.transaction(alice, work)).rejects.toMatchObject({ code: "25000" });
      expect(seen).toEqual(["25000", "refused"]);
    }
  });

  test("whose BEGIN fails runs none of its statements", async () => {
    const bad = { role: "authenticated", settings: [["statement_timeout", "nonsense"]] } as const;
    const work = (query: QueryInTransaction) =>
      Promise.allSettled([query(PID), query(sql("select current_user")), query(insert(15))]);
    await expect(database.transaction(bad, work)).rejects.toBeInstanceOf(ContextError);
    expect(await stored()).not.toContain(15);
  });

  test("whose connection is lost has changed nothing, and reports that", async () => {
    const work = async (query: QueryInTransaction) => {
      await query(insert(11));
      const pid = (await query(PID)).rows[0]![0];
      await opened.owner.query("select pg_terminate_backend($1)", [pid]);
      await query(insert(12));
    };
    await expect(database.transaction(alice, work)).rejects.toMatchObject({ kind: "unavailable", code: "PGRST001" });
    expect(await stored()).not.toContain(11);
  });

  test("is isolated from those of concurrent callers", async () => {
    const ids = Array.from({ length: 60 }, (_, index) => 100 + index);
    await Promise.all(
      ids.map((id) =>
        database.transaction(caller("authenticated", { sub: id }), async (query) => {
          await query(insert(id, id));
          const { rows } = await query(sql("select current_setting('request.jwt.claims')::json ->> 'sub'"));
          expect(rows).toEqual([[String(id)]]);
        }),
      ),
    );
    expect(await stored()).toEqual(expect.arrayContaining(ids));
    expect((await database.run(anon, sql("select current_user"))).rows).toEqual([["anon"]]);
  });
});
