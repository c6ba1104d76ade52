import { afterEach, beforeAll, expect, test } from "vitest";
import type { ReplicationStream } from "../../../live/stream/changes.ts";
import { FailoverGroup } from "../../failover.ts";
import { useFixture } from "../../fixture.ts";
import { serverBinaries } from "../../server-binaries.ts";
import { until } from "../../until.ts";
import { changesOf, Followed, since } from "./followed.ts";

const { major } = await serverBinaries();
const NO_FAILOVER_SLOTS = "Postgres before 17 has no failover slots.";

let last = 0;
const opened: ReplicationStream[] = [];

const group = useFixture(() => FailoverGroup.start());
beforeAll(() =>
  group.query(`
    create table items (id int primary key, name text);
    alter table items replica identity full;
    create publication followed for table items`),
);
afterEach(async () => {
  for (const changes of opened.splice(0)) await changes.close();
});

function open(): ReplicationStream {
  const changes = changesOf(group.url("postgres", "postgres"));
  opened.push(changes);
  return changes;
}

/** Inserts so many rows, a transaction each. Returns their ids. */
async function insert(count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, () => String(++last));
  for (const id of ids) await group.query(`insert into items values (${id})`);
  return ids;
}

const hasAll = (followed: Followed, ids: readonly string[]) => () => followed.values().includes(ids.at(-1));

test("a subscriber misses and repeats nothing if the standby that was promoted has a copy of the slot", async ({
  skip,
}) => {
  skip(major < 17, NO_FAILOVER_SLOTS);
  const changes = open();
  const followed = new Followed();
  await changes.follow(followed).from;
  await group.addStandby({ syncsSlots: true });
  await group.slotSynced();
  const before = await insert(20);
  await until(hasAll(followed, before));
  const { id, timeline } = changes.state().history!;
  const position = since(changes, followed.committed.at(-11)!.commitLsn);
  await group.caughtUp();
  await group.failOver("crash");
  const after = await insert(20);
  await until(hasAll(followed, after));
  expect(followed.values()).toEqual([...before, ...after]);
  expect(followed.gaps).toEqual([]);
  expect(followed.committed).toEqual(followed.begun);
  expect(changes.state().history).toMatchObject({ timeline: timeline + 1 });
  expect(changes.state().history!.ancestors.has(id)).toBe(true);

  // Another process, from a position of the old timeline.
  const resumed = new Followed();
  await open().follow(resumed, position).from;
  await until(hasAll(resumed, after));
  expect(resumed.values()).toEqual([...before.slice(10), ...after]);
});

test("a subscriber gets one gap if the standby has no copy of the slot", async () => {
  const changes = open();
  const followed = new Followed();
  await changes.follow(followed).from;
  await group.addStandby({ syncsSlots: false });
  const before = await insert(5);
  await until(hasAll(followed, before));
  const position = since(changes, followed.committed[0]!.commitLsn);
  await group.caughtUp();
  await group.failOver("shutdown");
  await until(() => followed.gaps.length > 0);
  const after = await insert(5);
  await until(hasAll(followed, after));
  expect(followed.values()).toEqual([...before, ...after]);
  expect(followed.gaps).toMatchObject([{ reason: expect.stringContaining("promoted, and does not keep") }]);
  await expect(open().follow(new Followed(), position).from).rejects.toMatchObject({
    kind: "gone",
    message: expect.stringContaining("no longer kept"),
  });
});

test("a subscriber that was sent what the promoted standby never had gets one gap, and positions from there are refused", async ({
  skip,
}) => {
  skip(major < 17, NO_FAILOVER_SLOTS);
  const changes = open();
  const [early, late] = [new Followed(), new Followed()];
  await changes.follow(early).from;
  await group.addStandby({ syncsSlots: true });
  await group.slotSynced();
  const common = await insert(5);
  await until(hasAll(early, common));
  const valid = since(changes, early.committed.at(-2)!.commitLsn);
  await group.caughtUp();
  await group.cutStandby();
  const lost = await insert(5);
  await until(hasAll(early, lost));
  const invalid = since(changes, early.committed.at(-1)!.commitLsn);
  // It has received none of the lost changes, and so misses nothing.
  await changes.follow(late).from;
  await group.failOver("crash");
  const after = await insert(5);
  await until(() => hasAll(early, after)() && hasAll(late, after)());
  expect(early.values()).toEqual([...common, ...lost, ...after]);
  expect(early.gaps).toMatchObject([{ reason: expect.stringContaining("without the last changes") }]);
  expect(late.values()).toEqual(after);
  expect(late.gaps).toEqual([]);

  await expect(open().follow(new Followed(), invalid).from).rejects.toMatchObject({
    kind: "gone",
    message: expect.stringContaining("a timeline that was abandoned"),
  });
  const resumed = new Followed();
  await open().follow(resumed, valid).from;
  await until(hasAll(resumed, after));
  expect(resumed.values()).toEqual([common.at(-1), ...after]);
});
