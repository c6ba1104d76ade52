import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { describe, expect, test } from "vitest";
import { openWire } from "../../postgres-wire.ts";
import { serverBinaries } from "../../server-binaries.ts";
import { until } from "../../until.ts";
import { Followed, since, useFollowed } from "./followed.ts";

const followed = useFollowed();

/** Runs many small transactions with some big ones between them, and returns the numbers that they insert. */
async function write(count: number, alongside: (written: number) => Promise<unknown>): Promise<string[]> {
  const writer = new pg.Client({ connectionString: followed.database.ownerUrl });
  await writer.connect();
  await followed.owner.query("truncate items");
  for (let written = 0; written < count; ) {
    const size = written % 1_000 === 0 ? 500 : 1;
    await writer.query("insert into items select $1 + number from generate_series(1, $2::int) as number", [
      written,
      size,
    ]);
    written += size;
    if (written % 250 === 0) await alongside(written);
  }
  await writer.end();
  const { rows } = await followed.owner.query<{ id: string }>("select id::text from items order by items.id");
  return rows.map(({ id }) => id);
}

function inserted(record: Followed): (string | null | undefined)[] {
  return record.changes.filter(({ kind }) => kind === "INSERT").map((change) => change.new![0]);
}

describe("after a lost connection", () => {
  test("no change is missed or repeated, and the order stays, in the middle of a transaction too", async () => {
    const changes = followed.open();
    const record = new Followed();
    let result = 0;
    record.beforeEach = () => (++result % 100 === 0 ? sleep(1) : undefined);
    await changes.follow(record).from;
    let kills = 0;
    const written = await write(2_500, async () => {
      await followed.killReaders();
      kills++;
    });
    await until(() => record.values().at(-1) === written.at(-1));
    await until(() => record.begun.length === record.committed.length);
    expect(kills).toBeGreaterThan(2);
    expect(inserted(record)).toEqual(written);
    expect(record.gaps).toEqual([]);
    expect(record.committed).toEqual(record.begun);
  });

  test("missed changes are announced as a gap if no slot keeps them", async () => {
    const changes = followed.open({ keep: "never" });
    const record = new Followed();
    await changes.follow(record).from;
    await followed.owner.query("truncate items; insert into items values (1)");
    await until(() => record.values().at(-1) === "1");
    const { commitLsn } = record.committed.at(-1)!;
    await followed.killReaders();
    await followed.owner.query("insert into items values (2)");
    await until(() => record.gaps.length === 1);
    await followed.owner.query("insert into items values (3)");
    await until(() => record.values().at(-1) === "3");
    const [gap] = record.gaps;
    expect(gap!.after).toBeGreaterThanOrEqual(commitLsn);
    expect(record.committed.at(-1)!.commitLsn).toBeGreaterThan(gap!.until);
  });

  test("a subscriber that blocks costs the connection, and loses nothing", async () => {
    const changes = followed.open({ patienceMs: 50 });
    const record = new Followed();
    await changes.follow(record).from;
    const stuck = Promise.withResolvers<void>();
    record.beforeEach = () => (record.changes.length === 2 ? stuck.promise : undefined);
    await followed.owner.query("truncate items");
    await followed.owner.query("insert into items select generate_series(1, 5000)");
    await until(() => changes.state().status === "away");
    await until(async () => (await followed.slots()).length === 1);
    expect(record.changes).toHaveLength(2);
    stuck.resolve();
    await until(() => record.committed.length === 2);
    expect(inserted(record)).toEqual(Array.from({ length: 5_000 }, (_, index) => String(index + 1)));
    expect(record.gaps).toEqual([]);
  });

  test("a silent connection is detected, and replaced", async () => {
    const wire = await openWire(followed.database.ownerUrl);
    const changes = followed.open({ url: wire.url, patienceMs: 1_000 });
    const record = new Followed();
    await changes.follow(record).from;
    // Silence alone is no reason while there is an answer.
    await sleep(2_000);
    expect(changes.state().status).toBe("streaming");
    wire.silence();
    await followed.owner.query("truncate items");
    await until(() => record.committed.length === 1);
    expect(wire.opened()).toBeGreaterThan(1);
    expect(record.gaps).toEqual([]);
    await changes.close();
    await wire.close();
  });

  test("a change that cannot be decoded is retried a few times, then skipped and announced", async ({ skip }) => {
    const { major } = await serverBinaries();
    skip(major < 15, "a publication has no condition that could fail");
    await followed.owner.query(`
      create table divided (id int);
      alter table divided replica identity full;
      alter publication followed add table divided where (1 / id >= 0)`);
    const changes = followed.open();
    const record = new Followed();
    await changes.follow(record).from;
    await followed.owner.query("insert into divided values (0)");
    await until(() => changes.state().reason?.includes("division by zero") === true);
    await until(() => record.gaps.length === 1);
    expect(record.gaps[0]!.reason).toContain("division by zero");
    await until(() => changes.state().status === "streaming");
    await followed.owner.query("insert into divided values (1)");
    await until(() => record.values().includes("1"));
    expect(record.gaps).toHaveLength(1);
  });
});

describe("a subscription since a position", () => {
  test("receives the changes that were committed after it, then new ones, also from another process", async () => {
    const one = followed.open();
    const early = new Followed();
    await one.follow(early).from;
    await followed.owner.query("truncate items");
    for (let id = 1; id <= 20; id++) await followed.owner.query("insert into items values ($1)", [id]);
    await until(() => early.committed.length === 21);
    const other = followed.open();
    const late = new Followed();
    const from = await other.follow(late, since(one, early.committed[10]!.commitLsn)).from;
    await followed.owner.query("insert into items values (21)");
    await until(() => late.committed.length === 11 && early.committed.length === 22);
    expect(late.values()).toEqual(early.values().slice(11));
    expect(late.committed).toEqual(early.committed.slice(11));
    expect(from).toBeLessThan(late.committed.at(-1)!.commitLsn);
    expect(from).toBeGreaterThanOrEqual(late.committed.at(-2)!.commitLsn);
  });

  test("misses and repeats no change for many subscribers that start at different times during many writes", async () => {
    const changes = followed.open();
    const main = new Followed();
    await changes.follow(main).from;
    const resumed: { readonly record: Followed; readonly since: number }[] = [];
    const written = await write(2_500, async () => {
      const index = Math.floor(main.committed.length / 2);
      if (index === 0) return;
      const record = new Followed();
      changes.follow(record, since(changes, main.committed[index]!.commitLsn));
      resumed.push({ record, since: index });
      if (resumed.length % 3 === 0) await followed.killReaders();
    });
    await until(() => main.values().at(-1) === written.at(-1));
    expect(inserted(main)).toEqual(written);
    expect(resumed.length).toBeGreaterThan(2);
    for (const { record, since } of resumed) {
      await until(() => record.committed.length === main.committed.length - since - 1);
      expect(record.committed).toEqual(main.committed.slice(since + 1));
      expect(record.gaps).toEqual([]);
    }
  });

  test("from the current position needs no replay", async () => {
    const changes = followed.open();
    const first = new Followed();
    await changes.follow(first).from;
    await followed.owner.query("truncate items");
    await until(() => first.committed.length === 1);
    await until(async () => (await changes.statistics()).lag!.bytes === 0);
    const second = new Followed();
    const { position } = changes.state();
    await changes.follow(second, since(changes, position!)).from;
    expect((await followed.slots()).filter(({ temporary }) => temporary)).toHaveLength(1);
    await followed.owner.query("truncate items");
    await until(() => first.committed.length === 2 && second.committed.length === 1);
  });

  test.each([
    ["one that is no longer kept", 1n],
    ["one that is yet to come", 2n ** 60n],
  ])("%s is refused, and others are served", async (_, lsn) => {
    const changes = followed.open();
    const record = new Followed();
    await changes.follow(record).from;
    await expect(changes.follow(new Followed(), since(changes, lsn)).from).rejects.toMatchObject({ kind: "gone" });
    await followed.owner.query("truncate items");
    await until(() => record.committed.length === 1);
  });

  test("is refused if no slot keeps changes", async () => {
    const kept = followed.open();
    const record = new Followed();
    await kept.follow(record).from;
    await followed.owner.query("truncate items");
    await until(() => record.committed.length === 1);
    const changes = followed.open({ keep: "never" });
    const { from } = changes.follow(new Followed(), since(kept, record.committed[0]!.commitLsn - 1n));
    await expect(from).rejects.toMatchObject({ kind: "gone" });
  });

  test("that is aborted ends", async () => {
    const changes = followed.open();
    const record = new Followed();
    await changes.follow(record).from;
    await followed.owner.query("truncate items");
    await followed.owner.query("insert into items select generate_series(1, 20000)");
    await until(() => record.committed.length === 2);
    const slow = new Followed();
    slow.beforeEach = () => sleep(1);
    const following = changes.follow(slow, since(changes, record.committed[0]!.commitLsn));
    await until(() => slow.changes.length > 0);
    following.close();
    await expect(following.from).rejects.toThrow("No longer followed");
    await until(async () => (await followed.slots()).filter(({ temporary }) => temporary).length === 1);
    expect(slow.changes.length).toBeLessThan(20_000);
  });
});

describe("the replication slot", () => {
  test("follows behind", async () => {
    const changes = followed.open({ keptMs: 100 });
    const record = new Followed();
    await changes.follow(record).from;
    const before = (await followed.slots())[0]!.confirmed_flush_lsn;
    await until(async () => {
      await followed.owner.query("truncate items");
      return (await followed.slots())[0]!.confirmed_flush_lsn !== before;
    });
    await followed.killReaders();
    const count = record.committed.length;
    await followed.owner.query("truncate items");
    await until(() => record.committed.length > count);
    expect(record.gaps).toEqual([]);
  });

  test("serves the next process when one is killed, and is created again when it was dropped", async () => {
    const first = followed.open();
    const record = new Followed();
    await first.follow(record).from;
    await followed.killReaders();
    await followed.owner.query(
      "select pg_drop_replication_slot(slot_name) from pg_replication_slots where database = current_database() and not temporary",
    );
    await until(async () => {
      await followed.owner.query("truncate items");
      return record.committed.length > 0;
    });
    expect((await followed.slots()).map(({ temporary }) => temporary)).toEqual([false, true]);
  });

  test("is dropped by a process without subscribers, unless another one has some", async () => {
    const busy = followed.open();
    const record = new Followed();
    await busy.follow(record).from;
    const warnings: object[] = [];
    const log = { info: () => {}, warn: (fields: object) => warnings.push(fields), error: () => {} };
    followed.open({ keptMs: 10, log });
    await sleep(200);
    expect((await followed.slots()).map(({ temporary }) => temporary)).toEqual([false, true]);
    await busy.close();
    // The first of them may have dropped it by now.
    await until(async () => (await followed.slots()).length <= 1);
    followed.open({ keptMs: 10, log });
    await until(async () => (await followed.slots()).length === 0);
    expect(warnings).toEqual([]);
  });
});
