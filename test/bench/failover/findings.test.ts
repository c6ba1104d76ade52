import { expect, test } from "vitest";
import { type Failover, findingsOf } from "../../../bench/failover/findings.ts";
import { HANGING, type Request, type Subscriber } from "../../../bench/failover/traffic.ts";

const FAILOVER: Failover = { kind: "kill", at: 10_000, promotedAt: 15_000, until: 30_000, sessionsOnStandbys: 0 };

function write(number: number, startedAt: number, failure: string | null = null, isKeyed = false): Request {
  return { isWrite: true, isKeyed, number, startedAt, endedAt: startedAt + 10, failure };
}

function subscriber(numbers: readonly number[], gaps: Subscriber["gaps"] = []): Subscriber {
  const received = new Map(numbers.map((number) => [number, 1]));
  return { received, gaps, closes: () => 0, close: async () => {} };
}

function findings(requests: Request[], stored: Readonly<Record<number, number>>, subscribers: Subscriber[] = []) {
  const traffic = { label: "", requests, subscribers, quiet: async () => {}, close: async () => {} };
  return findingsOf(traffic, new Map(Object.entries(stored).map(([key, count]) => [Number(key), count])), [FAILOVER]);
}

test("an acknowledged row that is not stored is lost, and one of unknown outcome is not", () => {
  const found = findings([write(1, 9_000), write(2, 9_100), write(3, 9_200, "503 08007")], { 1: 1 });
  expect(found).toMatchObject({ acknowledged: 2, lost: 1 });
});

test("a row that was written twice counts if its request had a key", () => {
  expect(findings([write(1, 9_000, null, true), write(2, 9_000)], { 1: 2, 2: 2 }).duplicates).toBe(1);
});

test("a row that was refused as not written must not be stored", () => {
  const requests = [
    write(1, 9_000, "503 PGRST000"),
    write(2, 9_000, "503 PGRST000", true),
    write(2, 9_100, null, true),
  ];
  expect(findings(requests, { 1: 1, 2: 1 }).refusedAndWritten).toBe(1);
});

test("a row that a subscriber misses is silent unless it was told of a gap at that time", () => {
  const requests = [write(1, 9_000), write(2, 16_000), write(3, 20_000), write(4, 28_000)];
  const gap = { from: 9_500, told: 17_000, until: 17_500 };
  const found = findings(requests, { 1: 1, 2: 1, 3: 1, 4: 1 }, [
    subscriber([1, 4], [gap]),
    subscriber([1, 2, 3, 4, 5]),
  ]);
  expect(found).toMatchObject({ missedAndTold: 1, missedSilently: 1, gapsTold: 1, invented: 1 });
});

test("the time without writes is between two acknowledged ones, and ours begins with the new leader", () => {
  const requests = [write(1, 9_990), write(2, 14_000, "503 PGRST000"), write(3, 16_190), write(4, 25_000)];
  expect(findings(requests, {})).toMatchObject({ withoutWrites: [8_810], untilFirstWrite: [1_200] });
  expect(findings(requests.slice(0, 3), {}).withoutWrites).toEqual([30_000 - 16_200]);
  expect(findings([], {}).withoutWrites).toEqual([20_000]);
});

test("requests that are not answered are counted, and reads while there is no leader", () => {
  const read = (startedAt: number, failure: string | null): Request => ({
    ...write(0, startedAt, failure),
    isWrite: false,
  });
  const found = findings(
    [write(1, 9_000, HANGING), read(12_000, null), read(12_000, "503 PGRST001"), read(16_000, null)],
    {},
  );
  expect(found).toMatchObject({ hanging: 1, reads: 2, failedReads: 1 });
});
