import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type {} from "../../../postgres/database/database.ts";
import type { RunStatementOptions } from "../../../postgres/database/database-options.ts";
import type { StatementContext } from "../../../postgres/database/statement.ts";
import { LONG_MS } from "../../../postgres/database/statement-shape.ts";
import { until } from "../../until.ts";
import { alice, anon, type OpenDatabase, open, sql } from "./open.ts";

const SCHEMA = `
  create table locked (id int); create table free (id int);
  grant all on locked, free to anon, authenticated;
`;

let opened: OpenDatabase;
let ended: AbortController;
beforeEach(async () => {
  opened = await open(SCHEMA, { statementTimeout: 0, anonymous: { role: "anon", statementTimeout: 0 } });
  ended = new AbortController();
});
afterEach(async () => {
  ended.abort();
  await opened[Symbol.asyncDispose]();
});

/** Callers who are told apart by this. */
const by = (context: StatementContext, key: string): StatementContext => ({ ...context, callerKey: () => key });

/** Runs until the end of the test. */
function occupy(context: StatementContext, text: string, readOnly = true): void {
  opened.database.run(context, sql(text), { readOnly, signal: ended.signal }).catch(() => {});
}

let count = 0;
/** Runs a new read: nobody knows how long it takes. */
const newRead = (context: StatementContext, from = "") => {
  const number = String(++count);
  return opened.database.run(context, sql(`select ${number}::text as n ${from}`), { readOnly: true });
};

const newReads = (context: StatementContext, from = "") =>
  Promise.all(Array.from({ length: 10 }, () => newRead(context, from)));

const running = async (text: string): Promise<number> => {
  const request = "select count(*)::int as n from pg_stat_activity where state = 'active' and strpos(query, $1) = 1";
  return (await opened.owner.query(request, [text])).rows[0].n;
};

describe("slow statements", () => {
  const NAP = "select pg_sleep(600)";

  /** Opens the connections of the slow pool, but for the one that is kept for short statements. Returns how many it may have. */
  async function openSlowPool({ database }: Pick<OpenDatabase, "database">): Promise<number> {
    const slow = () => database.state().pools.slow;
    await until(() => slow().max >= 4);
    const nap = () => database.run(alice, sql("select pg_sleep(0.1)"), { readOnly: true, pool: "slow" });
    while (slow().connections < slow().max - 1) await Promise.all(Array.from({ length: slow().max }, nap));
    return slow().max;
  }

  test("of one anonymous caller leave connections to others, anonymous ones too, and to her own new statements", async () => {
    const anonymous = by(anon, "address 192.0.2.1");
    for (let index = 0; index < 12; index++) occupy(anonymous, NAP);
    await newReads(alice);
    await newReads(by(anon, "address 192.0.2.2"));
    await newReads(anonymous);
    expect(opened.database.state().pools.slow.waiting).toBeGreaterThan(0);
  });

  test("of many anonymous callers leave connections to users, for slow statements as well", async () => {
    for (let index = 0; index < 12; index++) occupy(by(anon, `address 192.0.2.${index}`), `${NAP}, ${index}`);
    await newReads(alice);
    occupy(alice, `${NAP} as users`);
    await expect.poll(async () => (await running(`${NAP} as users`)) === 1).toBe(true);
  });

  test("of one user leave a connection to new statements of others, which run in turn", async () => {
    for (let index = 0; index < 12; index++) occupy(by(alice, "ada"), NAP);
    await newReads(by(alice, "bob"));
    occupy(by(alice, "bob"), `${NAP} as bobs`);
    await expect.poll(async () => (await running(`${NAP} as bobs`)) === 1).toBe(true);
  });

  test("finish however often others preceded them", async () => {
    const nap = opened.database.run(alice, sql("select 'slept' from pg_sleep(1)"), { readOnly: true });
    const naps = Promise.all([
      nap,
      ...Array.from({ length: 5 }, () => opened.database.run(alice, sql("select pg_sleep(0.5)"), { readOnly: true })),
    ]);
    for (let index = 0; index < 20; index++) await newReads(by(alice, "bob"));
    await naps;
    expect((await nap).rows).toEqual([["slept"]]);
  });

  test("of anonymous callers occupy no more than their share, even if nobody else waits", async () => {
    const slow = () => opened.database.state().pools.slow;
    const max = await openSlowPool(opened);
    const share = Math.floor(0.6 * max);
    for (let index = 0; index < max; index++) occupy(by(anon, `address 192.0.2.${index}`), `${NAP}, ${index}`);
    expect(slow().inFlight).toBe(max - 1);
    await until(() => slow().inFlight === share && slow().waiting === max - share);
  });

  test("of anonymous callers occupy at most half of the processors that Postgres shares with the service", async () => {
    const anonymous = { role: "anon", statementTimeout: 0 };
    await using beside = await open(SCHEMA, { statementTimeout: 0, anonymous, sharedProcessors: 4 });
    await openSlowPool(beside);
    const ended = new AbortController();
    const { signal } = ended;
    for (let index = 0; index < 12; index++) {
      const context = by(anon, `address 192.0.2.${index}`);
      beside.database.run(context, sql(`${NAP}, ${index}`), { readOnly: true, signal }).catch(() => {});
    }
    const stateOf = () => beside.database.state().pools.slow;
    await expect.poll(() => stateOf().inFlight === 2 && stateOf().waiting === 10).toBe(true);
    ended.abort();
  });

  test("delay no short ones of the same caller and text", async () => {
    const share = Math.floor(0.6 * (await openSlowPool(opened)));
    const nap = (seconds: number) =>
      opened.database.run(alice, sql("select pg_sleep($1)", String(seconds)), {
        readOnly: true,
        pool: "slow",
        signal: ended.signal,
      });
    for (let index = 0; index < 5; index++) await nap(0);
    for (let index = 0; index <= share; index++) nap(600).catch(() => {});
    const slow = () => opened.database.state().pools.slow;
    await expect
      .poll(async () => {
        await Promise.all([nap(0), nap(0), nap(0)]);
        return slow().inFlight === share && slow().waiting === 1;
      })
      .toBe(true);
    for (let index = 0; index < 20; index++) await nap(0);
  });

  test("leave a connection to those that are known to be short, even before they are known to be slow", async () => {
    const max = await openSlowPool(opened);
    const short = () => opened.database.run(alice, sql("select 'short'"), { readOnly: true, pool: "slow" });
    for (let index = 0; index < 5; index++) await short();
    // Each is new, and of somebody else.
    for (let index = 0; index < 2 * max; index++) occupy(by(alice, `user ${index}`), `${NAP}, ${index}`);
    expect((await short()).rows).toEqual([["short"]]);
    expect(opened.database.state().pools.slow.waiting).toBeGreaterThan(0);
  });

  test("that are within the share of their caller run on while others wait, and are not cancelled", async () => {
    const started = async () => {
      const request =
        "select pid, query_start from pg_stat_activity where state = 'active' and query = $1 order by pid";
      return (await opened.owner.query(request, [NAP])).rows;
    };
    for (let index = 0; index < 3; index++) occupy(by(alice, "ada"), NAP);
    await until(async () => (await started()).length === 3);
    const before = await started();
    const bob = by(alice, "bob");
    const others = Array.from({ length: 12 }, (_, index) =>
      opened.database.run(bob, sql(`select pg_sleep(0.15), ${index}`), { readOnly: true }),
    );
    await Promise.all(others);
    expect(await started()).toEqual(before);
  });
});

describe("streams that anonymous callers do not read", () => {
  const ROWS = sql("select repeat('x', 1000) from generate_series(1, 100000)");
  const firstOf = async (context: StatementContext) => {
    const rows = opened.database.stream(context, ROWS, { separator: "", signal: ended.signal });
    return (await rows.next()).value;
  };

  test("leave one to others", async () => {
    await until(() => opened.database.state().pools.stream.max >= 2);
    const { max } = opened.database.state().pools.stream;
    const strangers = Array.from({ length: max }, (_, index) => firstOf(by(anon, `address 192.0.2.${index}`)));
    for (const stranger of strangers) stranger.catch(() => {});
    await Promise.all(strangers.slice(0, -1));
    expect(opened.database.hasFreeStream(by(anon, "address 192.0.2.9"))).toBe(false);
    expect((await firstOf(alice))?.rows).toBeGreaterThan(0);
  });
});

describe("a statement that was fast and is slow this time", () => {
  const nap = (seconds: number) => sql("select $1::text from pg_sleep($1::float)", String(seconds));
  const read = (seconds: number, context: StatementContext = alice) =>
    opened.database.run(context, nap(seconds), { readOnly: true, signal: ended.signal });

  /** Runs it until it is trusted to share its connection. */
  async function trust(context = alice): Promise<void> {
    for (let isTrusted = false; !isTrusted; ) {
      const answer = read(0, context);
      isTrusted = opened.database.state().pools.read.inFlight > 0;
      await answer;
    }
  }

  test("delays neither the statements queued after it nor those that find no connection", async () => {
    await trust();
    const { max: most } = opened.database.state().pools.read;
    const long = Array.from({ length: 4 * most }, () => read(600).catch(() => {}));
    await Promise.all(Array.from({ length: 50 }, () => read(0, by(alice, "bob"))));
    await newReads(alice);
    // None of the long ones has ended meanwhile.
    expect(await running(nap(600).text)).toBeGreaterThan(0);
    ended.abort();
    await Promise.all(long);
  });

  test("takes a share of anonymous callers like other long ones, even if nobody waits", async () => {
    const stranger = by(anon, "address 192.0.2.1");
    await trust(stranger);
    const { inFlight } = opened.database.state().pools.read;
    expect(inFlight).toBe(0);
    read(600, stranger).catch(() => {});
    await until(() => opened.database.state().pools.slow.inFlight === 1);
    expect(opened.database.state().pools.read.inFlight).toBe(0);
  });

  test("finishes, as do statements that a cancel request has hit by mistake", async () => {
    await trust();
    const answers = [];
    for (let round = 0; round < 20; round++) {
      // Some end by themselves near the time after which they are interrupted.
      for (const seconds of [0.05, 0, 0, 0.06, 0, 0, 0.075, 0, 0]) answers.push([seconds, read(seconds)] as const);
      await Promise.all(answers.map(([, answer]) => answer));
      await trust();
    }
    for (const [seconds, answer] of answers) expect((await answer).rows).toEqual([[String(seconds)]]);
  });
});

describe("a locked table", () => {
  const LOCK = "begin; lock table locked in access exclusive mode";

  test("delays no statements on other tables, reads or writes, known or new, by the same caller too", async () => {
    const readLocked = () => occupy(alice, "select count(*) from public.locked");
    const writeLocked = () => occupy(alice, "insert into public.locked values (1)", false);
    const readFree = () => opened.database.run(alice, sql("select count(*) from public.free"), { readOnly: true });
    const writeFree = () => opened.database.run(alice, sql("insert into public.free values (1)"));
    for (let index = 0; index < 10; index++) await Promise.all([readFree(), writeFree()]);
    await opened.owner.query(LOCK);
    try {
      for (let index = 0; index < 50; index++) {
        readLocked();
        writeLocked();
      }
      for (let index = 0; index < 20; index++) await Promise.all([readFree(), writeFree()]);
      await newReads(alice, "from public.free limit 1");
      await opened.database.transaction(alice, (query) => query(sql("insert into public.free values (2)")));
      const rows = opened.database.stream(alice, sql("select 'row' from public.free limit 1"), { separator: "" });
      expect((await rows.next()).value?.rows).toBe(1);
      await rows.return?.();
    } finally {
      ended.abort();
      await opened.owner.query("rollback");
    }
  });
});

test("gets all write connections again when a write to it was fast", async () => {
  const write = () => opened.database.run(alice, sql("insert into public.locked values (1)"));
  const pool = () => opened.database.state().pools.write;
  const atOnce = async () => {
    await opened.owner.query("begin; lock table locked in access exclusive mode");
    const writes = Array.from({ length: 2 * pool().max }, write);
    const { inFlight } = pool();
    // A caller that is not remembered for slow statements waits less than this.
    await sleep(3 * LONG_MS);
    await opened.owner.query("rollback");
    await Promise.all(writes);
    return inFlight;
  };
  await atOnce();
  // On a busy machine it may not be fast.
  await expect
    .poll(async () => {
      await write();
      return (await atOnce()) === pool().max;
    })
    .toBe(true);
});

describe("the lock timeout", () => {
  const LOCK = "begin; lock table locked in access exclusive mode";
  const LOCKED = { code: "55P03", schema: "public", table: "locked" };
  const hasty = { lockTimeout: 50 };

  test("has a limit; a caller with privileges gets the table and the lock mode in the error", async () => {
    await using strict = await open(SCHEMA, hasty);
    const { database, owner } = strict;
    await owner.query("revoke all on locked from anon");
    await owner.query("create view seen as select * from locked; grant select on seen to anon");
    await owner.query(LOCK);
    const read = sql("select * from public.locked");
    const write = sql("insert into public.locked values (1)");
    await expect(database.run(alice, read, { readOnly: true })).rejects.toMatchObject({
      ...LOCKED,
      detail: 'Another transaction has locked relation "locked" (AccessExclusiveLock).',
    });
    await expect(database.run(alice, write)).rejects.toMatchObject(LOCKED);
    await expect(database.transaction(alice, (query) => query(write))).rejects.toMatchObject(LOCKED);
    await expect(database.stream(alice, read, { separator: "" }).next()).rejects.toMatchObject(LOCKED);
    const unseen = database.run(anon, sql("select * from public.seen"), { readOnly: true });
    await expect(unseen).rejects.toMatchObject({ code: "55P03", table: undefined, detail: undefined });
    await owner.query("rollback");
  });

  test("and requests that wait for a connection behind it fail with its name, if their role may know it", async () => {
    await using strict = await open(SCHEMA, { lockTimeout: 300, acquireTimeout: 700 });
    const { database, owner } = strict;
    await owner.query("revoke all on locked from anon");
    await owner.query(LOCK);
    const refusals = async (context: StatementContext) => {
      const reads = Array.from({ length: 80 }, () =>
        database.run(context, sql("select * from public.locked"), { readOnly: true }),
      );
      const settled = await Promise.allSettled(reads);
      return settled.map((each) => (each.status === "rejected" ? each.reason : null));
    };
    const refused = (await refusals(alice)).filter((reason) => reason?.code === "PGRST003");
    expect(refused.length).toBeGreaterThan(0);
    for (const reason of refused) {
      expect(reason).toMatchObject({
        kind: "timeout",
        message: '"locked" is locked by another transaction; try again.',
        details: 'Another transaction has locked relation "locked" (AccessExclusiveLock).',
        hint: "Try again when it has ended.",
      });
    }
    for (const reason of await refusals(anon)) expect(reason.details ?? reason.detail ?? null).toBeNull();
    await owner.query("rollback");
  });

  test("names no table for the lock of a row", async () => {
    await using strict = await open(SCHEMA, hasty);
    const { database, owner } = strict;
    await owner.query("insert into locked values (1)");
    await owner.query("begin; update locked set id = 2");
    const update = database.run(alice, sql("update public.locked set id = 3"));
    await expect(update).rejects.toMatchObject({ code: "55P03", table: undefined });
    await owner.query("rollback");
  });

  test("is the role's own if it has one, and disabled if the call has a limit of its own", async () => {
    await using strict = await open(SCHEMA, hasty);
    const setting = async (context: StatementContext, options: RunStatementOptions = {}) =>
      (await strict.database.run(context, sql("select current_setting('lock_timeout')"), options)).rows[0]![0];
    expect(await setting(anon)).toBe("50ms");
    expect(await setting({ ...anon, settings: [["lock_timeout", "2s"]] })).toBe("2s");
    expect(await setting(anon, { timeoutMs: 60_000 })).toBe("0");
  });
});
