import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { describe, expect, test } from "vitest";
import { collectGarbage } from "../../../runtime/memory/collect-garbage.ts";
import { until } from "../../until.ts";
import { changesOf, Followed, QUIET, useFollowed } from "./followed.ts";

const followed = useFollowed();

describe("a subscriber of changes", () => {
  test("a follower gets each transaction with its changes, in the order of the commits", async () => {
    const changes = followed.open();
    const record = new Followed();
    const from = await changes.follow(record).from;

    const late = new pg.Client({ connectionString: followed.database.ownerUrl });
    await late.connect();
    await late.query("begin; insert into items values (1, 'late')");
    await followed.owner.query("insert into items values (2, 'a'); update items set name = 'b' where id = 2");
    await followed.owner.query("begin; insert into items values (9, 'never'); rollback");
    await late.query("commit");
    await late.end();
    await followed.owner.query("delete from items");
    await until(() => record.committed.length === 3);

    expect(record.changes.map(({ kind, old, new: row, index }) => [kind, index, old, row])).toEqual([
      ["INSERT", 0, null, ["2", "a"]],
      ["UPDATE", 1, ["2", "a"], ["2", "b"]],
      ["INSERT", 0, null, ["1", "late"]],
      ["DELETE", 0, ["1", "late"], null],
      ["DELETE", 1, ["2", "b"], null],
    ]);
    const positions = record.committed.map(({ commitLsn }) => commitLsn);
    expect(positions).toEqual(positions.toSorted((one, other) => (one < other ? -1 : 1)));
    expect(positions[0]).toBeGreaterThan(from);
    expect(Math.abs(record.committed[0]!.commitTime.getTime() - Date.now())).toBeLessThan(60_000);
  });

  test("receives nothing that was committed before it subscribed, and everything after", async () => {
    const changes = followed.open();
    await changes.follow(new Followed()).from;
    const rows = 200;
    const records: { readonly record: Followed; readonly since: number }[] = [];
    for (let id = 0; id < rows; id++) {
      if (id % 20 === 0) {
        const record = new Followed();
        await changes.follow(record).from;
        records.push({ record, since: id });
      }
      await followed.owner.query("insert into items values ($1)", [1_000 + id]);
    }
    for (const { record, since } of records) {
      const expected = Array.from({ length: rows - since }, (_, index) => String(1_000 + since + index));
      await until(() => record.values().at(-1) === expected.at(-1));
      expect(record.values().slice(-expected.length)).toEqual(expected);
    }
  });

  test("filters once per transaction, and receives nothing else", async () => {
    await followed.owner.query("create table others (id int); alter publication followed add table others");
    const changes = followed.open();
    const request: string[] = [];
    const picky = new Followed();
    picky.wants = (({ name }: { name: string }) => request.push(name) > 0 && name === "items") as Followed["wants"];
    await changes.follow(picky).from;
    await followed.owner.query("insert into others select generate_series(1, 3)");
    await followed.owner.query(
      "begin; insert into others values (4), (5); insert into items values (2001), (2002); commit",
    );
    await until(() => picky.committed.length === 1);
    expect(request).toEqual(["others", "others", "items"]);
    expect(picky.begun).toHaveLength(1);
    // Numbers also count the changes that only others want.
    expect(picky.changes.map(({ index }) => index)).toEqual([2, 3]);
  });

  test("that unsubscribed receives nothing more", async () => {
    const changes = followed.open();
    const [leaving, staying] = [new Followed(), new Followed()];
    const following = changes.follow(leaving);
    await following.from;
    await changes.follow(staying).from;
    await followed.owner.query("insert into items values (3001)");
    await until(() => leaving.committed.length === 1);
    following.close();
    await followed.owner.query("insert into items values (3002)");
    await until(() => staying.committed.length === 2);
    expect(leaving.values()).toEqual(["3001"]);
  });

  test("a follower that throws gets a gap, and continues with the next transaction as the others do", async () => {
    const errors: unknown[] = [];
    const changes = followed.open({ log: { ...QUIET, error: (fields: object) => errors.push(fields) } });
    const [failing, other] = [new Followed(), new Followed()];
    failing.beforeEach = () => {
      if (failing.changes.length === 1) throw new Error("no");
    };
    await changes.follow(failing).from;
    await changes.follow(other).from;
    await followed.owner.query("insert into items values (4001), (4002)");
    await followed.owner.query("insert into items values (4003)");
    await until(() => other.committed.length === 2 && failing.committed.length === 1);
    expect(other.values()).toEqual(["4001", "4002", "4003"]);
    expect(failing.values()).toEqual(["4001", "4003"]);
    expect(failing.gaps).toHaveLength(1);
    expect(errors).toHaveLength(1);
  });

  test("that is slow delays the delivery of messages, not their processing", async () => {
    const changes = followed.open();
    const record = new Followed();
    let atOnce = 0;
    let most = 0;
    record.beforeEach = async () => {
      most = Math.max(most, ++atOnce);
      await sleep(1);
      atOnce--;
    };
    await changes.follow(record).from;
    await followed.owner.query("insert into items select 5000 + number from generate_series(1, 100) as number");
    await followed.owner.query("insert into items select 5100 + number from generate_series(1, 100) as number");
    await until(() => record.committed.length === 2);
    expect(record.values()).toEqual(Array.from({ length: 200 }, (_, index) => String(5_001 + index)));
    expect(most).toBe(1);
  });

  test("a large transaction with a slow subscriber does not accumulate in memory", async () => {
    const changes = followed.open();
    const record = new Followed();
    const rows = 30_000;
    let result = 0;
    let most = 0;
    const buffersInUse = () => {
      collectGarbage();
      return process.memoryUsage().arrayBuffers;
    };
    record.change = async ({ new: row }) => {
      if (row?.[1]?.length !== 2_000) return;
      if (++result % 1_000 === 0) await sleep(5);
      if (result % 5_000 === 0) most = Math.max(most, buffersInUse());
    };
    await changes.follow(record).from;
    const before = buffersInUse();
    await followed.owner.query(
      "insert into items select 10000 + number, repeat('x', 2000) from generate_series(1, $1) as number",
      [rows],
    );
    await until(() => record.committed.length === 1);
    expect(result).toBe(rows);
    // The transaction is 60 MB long.
    expect(most - before).toBeLessThan(30_000_000);
    await followed.owner.query("truncate items");
  });
});

describe("a decoded change", () => {
  /** The changes that a follower is told of while the statements run. */
  async function resultOf(...statements: string[]): Promise<Followed["changes"]> {
    const changes = followed.open();
    const record = new Followed();
    await changes.follow(record).from;
    for (const statement of statements) await followed.owner.query(statement);
    await changes.emit("end", Buffer.alloc(0));
    await until(() => record.messages.length === 1);
    return record.changes;
  }

  test("has values as text in Postgres's format, with any settings of the owner", async () => {
    await followed.owner.query(`
      create type mood as enum ('good', 'bad');
      create domain age as int;
      create table kinds (id int primary key, at timestamptz, day date, span interval, ratio float8, bytes bytea, list text[],
        mood mood, age age, doc jsonb, flag bool, gone text);
      alter table kinds replica identity full;
      alter publication followed add table kinds;
      alter role postgres in database ${followed.database.name} set datestyle = 'German';
      alter role postgres in database ${followed.database.name} set timezone = 'Asia/Tokyo';
      alter role postgres in database ${followed.database.name} set bytea_output = 'escape'`);
    const [change] = await resultOf(
      `insert into kinds values (1, '2026-01-02 03:04:05.6+00', '2026-01-02', '1 day 2 h', 0.1, '\\x00ff', '{a,"b c"}',
         'good', 7, '{"ü": 1}', true, null)`,
    );
    expect(change!.new).toEqual([
      "1",
      "2026-01-02 03:04:05.6+00",
      "2026-01-02",
      "1 day 02:00:00",
      "0.1",
      "\\x00ff",
      '{a,"b c"}',
      "good",
      "7",
      '{"ü": 1}',
      "t",
      null,
    ]);
    expect(change!.relation).toMatchObject({ schema: "public", name: "kinds", replicaIdentity: "full" });
    expect(change!.relation.columns.map(({ typeName }) => typeName)).toEqual([
      "int4",
      "timestamptz",
      "date",
      "interval",
      "float8",
      "bytea",
      "_text",
      "mood",
      // A domain's values are its base type's.
      "int4",
      "jsonb",
      "bool",
      "text",
    ]);
  });

  test("has an unchanged TOAST value from the old row, or omits it", async () => {
    await followed.owner.query(`
      create table longs (id int primary key, short text, long text);
      alter table longs alter column long set storage external, replica identity full;
      alter publication followed add table longs;
      insert into longs values (1, 'a', repeat('x', 10000))`);
    const [whole, part] = await resultOf(
      "update longs set short = 'b'",
      "alter table longs replica identity default",
      "update longs set short = 'c'",
    );
    expect(whole!.new).toEqual(["1", "b", "x".repeat(10_000)]);
    expect(whole!.old).toEqual(["1", "a", "x".repeat(10_000)]);
    expect(part!.new).toEqual(["1", "c", undefined]);
    expect(part!.old).toBeNull();
    expect(part!.relation.replicaIdentity).toBe("default");
  });

  test("has only the key of the old row without REPLICA IDENTITY FULL", async () => {
    await followed.owner.query(`
      create table keyed (id int primary key, name text);
      alter publication followed add table keyed;
      insert into keyed values (1, 'a')`);
    const [update, remove] = await resultOf("update keyed set id = 2", "delete from keyed");
    expect([update!.old, update!.new, remove!.old]).toEqual([
      ["1", undefined],
      ["2", "a"],
      ["2", undefined],
    ]);
    expect(remove!.relation.columns.map(({ isIdentity }) => isIdentity)).toEqual([true, false]);
  });

  test("of a table that is altered, renamed, or published meanwhile is decoded with the columns of its time", async () => {
    await followed.owner.query(
      "create table moving (id int, name text); alter table moving replica identity full; alter publication followed add table moving",
    );
    const result = await resultOf(
      "insert into moving values (1, 'a')",
      "begin; insert into moving values (2, 'b'); alter table moving add size int default 5; insert into moving values (3, 'c'); commit",
      "alter table moving drop name",
      "insert into moving values (4, 6)",
      "alter table moving rename to moved",
      "alter table moved alter size type text using size || ' cm'",
      "insert into moved values (5, 'x')",
      "create table newer (id int); alter publication followed add table newer; insert into newer values (1)",
      "alter publication followed drop table moved; insert into moved values (6)",
    );
    expect(
      result.map(({ relation, new: row }) => [relation.name, relation.columns.map(({ name }) => name), row]),
    ).toEqual([
      ["moving", ["id", "name"], ["1", "a"]],
      ["moving", ["id", "name"], ["2", "b"]],
      ["moving", ["id", "name", "size"], ["3", "c", "5"]],
      ["moving", ["id", "size"], ["4", "6"]],
      ["moved", ["id", "size"], ["5", "x"]],
      ["newer", ["id"], ["1"]],
    ]);
  });

  test("of a partition belongs to its root table", async () => {
    await followed.owner.query(`
      create table parts (id int) partition by range (id);
      create table parts_low partition of parts for values from (0) to (10);
      create table parts_high partition of parts for values from (10) to (20);
      alter table parts_low replica identity full;
      alter table parts_high replica identity full;
      alter publication followed add table parts`);
    const result = await resultOf("insert into parts values (1)", "update parts set id = 11");
    expect(result.map(({ kind, relation }) => [kind, relation.name])).toEqual([
      ["INSERT", "parts"],
      ["DELETE", "parts"],
      ["INSERT", "parts"],
    ]);
  });

  test("is one for each table of a TRUNCATE", async () => {
    await followed.owner.query(
      "create table one (id int); create table two (id int); alter publication followed add table one, two",
    );
    const result = await resultOf("truncate one, two");
    expect(result.map(({ kind, relation, index }) => [kind, relation.name, index])).toEqual([
      ["TRUNCATE", "one", 0],
      ["TRUNCATE", "two", 1],
    ]);
  });

  test("of some megabytes is complete", async () => {
    await followed.owner.query("truncate items");
    const [change] = await resultOf("insert into items values (1, repeat('ä', 5000000))");
    expect(change!.new![1]).toBe("ä".repeat(5_000_000));
  });
});

describe("messages", () => {
  test("reach every subscriber of the database in the order in which they were emitted", async () => {
    const [here, there] = [followed.open(), followed.open()];
    const [near, far] = [new Followed(), new Followed()];
    await here.follow(near).from;
    await there.follow(far).from;
    await Promise.all(
      Array.from({ length: 2_500 }, (_, number) => here.emit("count", Buffer.from([number >> 8, number]))),
    );
    await until(() => near.messages.length === 2_500 && far.messages.length === 2_500);
    const numbers = Array.from({ length: 2_500 }, (_, number) => number);
    for (const { messages } of [near, far]) {
      expect(messages.map(({ content }) => content.readUInt16BE())).toEqual(numbers);
      expect(messages[0]).toMatchObject({ prefix: "count" });
      expect(messages[0]!.transaction).not.toBeNull();
    }
  });

  test("of SQL arrive with their transaction, or immediately", async () => {
    const changes = followed.open();
    const record = new Followed();
    await changes.follow(record).from;
    await followed.owner.query("truncate items");
    await followed.owner.query(`begin;
      select pg_logical_emit_message(false, 'now', 'x');
      insert into items values (1);
      select pg_logical_emit_message(true, 'then', 'ü');
      commit`);
    await until(() => record.messages.length === 2);
    const [now, then] = record.messages;
    expect([now!.prefix, now!.transaction]).toEqual(["now", null]);
    expect([then!.prefix, String(then!.content), then!.index]).toEqual(["then", "ü", 1]);
    expect(then!.transaction).toEqual(record.begun.at(-1));
  });
});

describe("the replication stream", () => {
  test("is idle without subscribers, and reports its position", async () => {
    const changes = followed.open();
    expect(changes.state()).toEqual({ status: "idle", reason: null, position: null, history: null });
    expect(await changes.statistics()).toMatchObject({ status: "idle", followers: 0, transactions: 0, lag: null });
    // The slots of earlier tests end with their connections.
    await until(async () => (await followed.slots()).every(({ temporary }) => !temporary));
    await sleep(20);
    expect(changes.state().status).toBe("idle");
    const record = new Followed();
    const following = changes.follow(record);
    expect(changes.state().status).toBe("opening");
    await following.from;
    expect(changes.state().status).toBe("streaming");
    await followed.owner.query("truncate items; insert into items values (1)");
    await until(async () => record.committed.length === 1 && (await changes.statistics()).lag!.bytes === 0);
    expect(changes.state().position).toBeGreaterThanOrEqual(record.committed[0]!.commitLsn);
    const statistics = await changes.statistics();
    expect(statistics).toMatchObject({ status: "streaming", followers: 1, transactions: 1, changes: 2, gaps: 0 });
    // Other databases of the cluster write to the same log.
    await expect.poll(async () => (await changes.statistics()).lag).toEqual({ bytes: 0, seconds: 0 });
    expect(statistics.retainedBytes).toBeGreaterThan(0);
  });

  test("ends a while after the last subscriber has left, and releases its slot", async () => {
    const changes = followed.open({ keptMs: 50 });
    const following = changes.follow(new Followed());
    await following.from;
    expect((await followed.slots()).map(({ temporary }) => temporary)).toEqual([false, true]);
    following.close();
    await until(async () => (await followed.slots()).length === 0);
    expect(changes.state().status).toBe("idle");

    // The stream begins anew.
    const record = new Followed();
    await changes.follow(record).from;
    await followed.owner.query("truncate items");
    await until(() => record.committed.length === 1);
  });

  test("continues for the other subscribers when one leaves", async () => {
    const changes = followed.open({ keptMs: 20 });
    const record = new Followed();
    const leaving = changes.follow(new Followed());
    await changes.follow(record).from;
    leaving.close();
    await sleep(100);
    await followed.owner.query("truncate items");
    await until(() => record.committed.length === 1);
    expect(record.gaps).toEqual([]);
  });

  test("does not wait for an open transaction, if there is a slot to copy", async () => {
    await followed.open().follow(new Followed()).from;
    const writer = new pg.Client({ connectionString: followed.database.ownerUrl });
    await writer.connect();
    await writer.query("begin; insert into items values (77)");
    const record = new Followed();
    await followed.open().follow(record).from;
    await writer.query("commit");
    await writer.end();
    await expect.poll(() => record.values().includes("77")).toBe(true);
  });

  test("closes though a subscriber hangs", async () => {
    const changes = followed.open({ patienceMs: 20 });
    const record = new Followed();
    record.beforeEach = () => new Promise(() => {});
    await changes.follow(record).from;
    await followed.owner.query("truncate items");
    await expect.poll(() => changes.state().status === "away").toBe(true);
    await changes.close();
  });

  test("closes while it waits for such a transaction", async () => {
    const writer = new pg.Client({ connectionString: followed.database.ownerUrl });
    await writer.connect();
    await writer.query("begin; insert into items values (78)");
    const changes = followed.open({ keep: "never" });
    const { from } = changes.follow(new Followed());
    const refused = expect(from).rejects.toThrow("stops");
    const waiting = `select from pg_stat_activity
      where datname = current_database() and query like '%pg_create_logical%' and wait_event_type = 'Lock'`;
    await until(async () => (await followed.owner.query(waiting)).rowCount === 1);
    expect(changes.state().status).toBe("opening");
    await changes.close();
    await refused;
    expect(() => changes.follow(new Followed())).toThrow("stops");
    await writer.query("rollback");
    await writer.end();
  });
});

describe("a database without logical replication", () => {
  test("is refused with the reason, and tried again for the next subscriber", async () => {
    const changes = followed.open({ publication: "later" });
    await expect(changes.follow(new Followed()).from).rejects.toMatchObject({ kind: "unavailable" });
    expect(changes.state().status).toBe("refused");
    expect(changes.state().reason).toContain("later");
    await followed.owner.query("create publication later for table items");
    const record = new Followed();
    await changes.follow(record).from;
    expect(changes.state()).toMatchObject({ status: "streaming", reason: null });
    await followed.owner.query("truncate items");
    await until(() => record.committed.length === 1);
  });

  test("that revokes it later is reported, and the stream continues when it is granted", async () => {
    await followed.owner.query("create table gone (id int); create publication gone for table gone");
    const warnings: object[] = [];
    const log = { ...QUIET, warn: (fields: object) => warnings.push(fields) };
    const changes = followed.open({ publication: "gone", keep: "always", log });
    const record = new Followed();
    await changes.follow(record).from;
    await followed.owner.query("drop publication gone");
    await followed.killReaders();
    await until(() => changes.state().status === "refused");
    expect(changes.state().reason).toContain("no publication gone");
    expect(record.gaps.map(({ reason }) => reason)).toEqual([changes.state().reason]);
    expect(warnings).toContainEqual({ err: expect.objectContaining({ message: changes.state().reason }) });
    await followed.owner.query("create publication gone for table gone");
    await until(() => changes.state().status === "streaming");
    await followed.owner.query("insert into gone values (1)");
    await until(() => record.values().includes("1"));
    await changes.close();
    await followed.owner.query("drop table gone; drop publication gone");
  });

  test("is refused behind a connection pooler", async () => {
    // PgBouncer sends this to clients that want to replicate.
    const answer = Buffer.from("SFATAL\0VFATAL\0C08P01\0Munsupported startup parameter: replication\0\0");
    const header = Buffer.from([0x45, 0, 0, 0, 4 + answer.length]);
    const pooler = createServer((socket) => socket.once("data", () => socket.end(Buffer.concat([header, answer]))));
    pooler.listen(0, "127.0.0.1");
    await once(pooler, "listening");
    const { port } = pooler.address() as AddressInfo;
    const changes = changesOf(`postgresql://postgres@127.0.0.1:${port}/any`);
    await expect(changes.follow(new Followed()).from).rejects.toMatchObject({ kind: "unavailable" });
    expect(changes.state().reason).toContain("pooler");
    await changes.close();
    pooler.close();
  });

  test("is refused to a role that may not replicate", async () => {
    const changes = changesOf(followed.database.url);
    await expect(changes.follow(new Followed()).from).rejects.toMatchObject({ kind: "unavailable" });
    expect(changes.state().reason).toContain("replication");
    await changes.close();
  });
});
