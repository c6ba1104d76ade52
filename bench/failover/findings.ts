import { type Gap, HANGING, type Request, type Subscriber, type Traffic } from "./traffic.ts";

/** The end of a leader, and the promotion of the next one. Times are those of `Date.now()`. */
export type Failover = {
  readonly kind: string;
  readonly at: number;
  /** The time at which another node accepts writes, and the former leader does not. */
  readonly promotedAt: number;
  /** The time at which the next failover begins, or the run ends. */
  readonly until: number;
  readonly sessionsOnStandbys: number;
};

export type Findings = {
  readonly acknowledged: number;
  readonly lost: number;
  readonly duplicates: number;
  /** Written rows of requests whose client was told that nothing was written. */
  readonly refusedAndWritten: number;
  readonly hanging: number;
  readonly received: number;
  readonly repeated: number;
  readonly gapsTold: number;
  /** Missed rows of subscribers that were told of a gap. */
  readonly missedAndTold: number;
  readonly missedSilently: number;
  readonly invented: number;
  /** The time without acknowledged writes per failover, in milliseconds. */
  readonly withoutWrites: readonly number[];
  /** The time from the moment when the new leader accepts writes to the first acknowledged write. */
  readonly untilFirstWrite: readonly number[];
  readonly reads: number;
  readonly failedReads: number;
  readonly failures: Readonly<Record<string, number>>;
  /** The write times of the first rows that were lost or missed silently. */
  readonly details: readonly string[];
};

/** The number of times that each number is in the table. */
export type Stored = ReadonlyMap<number, number>;

/** The failures after which nothing was written, according to docs/faults.md. */
const DEFINITE: ReadonlySet<string> = new Set(["503 PGRST000", "504 PGRST003"]);
/** The tolerance for order: commits arrive in their own order, which is not that of the responses. */
const SLACK_MS = 1_000;

export function findingsOf(
  { requests, subscribers }: Traffic,
  stored: Stored,
  failovers: readonly Failover[],
): Findings {
  const writes = requests.filter(({ isWrite }) => isWrite);
  const acknowledged = writes.filter(({ failure }) => failure === null);
  const refused = writes.filter(({ failure, isKeyed }) => !isKeyed && failure !== null && DEFINITE.has(failure));
  const keyed = new Set(writes.filter(({ isKeyed }) => isKeyed).map(({ number }) => number));
  const during = requests.filter(
    ({ isWrite, startedAt }) =>
      !isWrite && failovers.some(({ at, promotedAt }) => startedAt >= at && startedAt < promotedAt),
  );
  const failures: Record<string, number> = {};
  for (const { failure } of requests) if (failure !== null) failures[failure] = (failures[failure] ?? 0) + 1;
  const lost = acknowledged.filter(({ number }) => !stored.has(number));
  const { silent, ...counts } = receivedBy(subscribers, writes, stored);
  return {
    acknowledged: acknowledged.length,
    lost: lost.length,
    duplicates: [...keyed].filter((number) => (stored.get(number) ?? 0) > 1).length,
    refusedAndWritten: refused.filter(({ number }) => stored.has(number)).length,
    hanging: failures[HANGING] ?? 0,
    ...counts,
    withoutWrites: failovers.map((failover) => longestPause(acknowledged, failover)),
    untilFirstWrite: failovers.map(({ promotedAt }) => {
      const first = acknowledged.find(({ endedAt }) => endedAt >= promotedAt);
      return first ? first.endedAt - promotedAt : Number.POSITIVE_INFINITY;
    }),
    reads: during.length,
    failedReads: during.filter(({ failure }) => failure !== null).length,
    failures,
    details: [
      ...lost
        .slice(0, DETAILS)
        .map((request) => `lost: written from ${time(request.startedAt)} to ${time(request.endedAt)}`),
      ...silent.slice(0, DETAILS),
    ],
  };
}

const DETAILS = 20;
const time = (at: number) => (Number.isFinite(at) ? new Date(at).toISOString().slice(11, 23) : "now");

function receivedBy(subscribers: readonly Subscriber[], writes: readonly Request[], stored: Stored) {
  const times = new Map<number, { from: number; until: number }>();
  for (const { number, startedAt, endedAt } of writes) {
    const known = times.get(number);
    times.set(number, { from: known?.from ?? startedAt, until: endedAt });
  }
  let received = 0;
  let repeated = 0;
  let missedAndTold = 0;
  const silent: string[] = [];
  let invented = 0;
  for (const subscriber of subscribers) {
    received += subscriber.received.size;
    for (const [number, count] of subscriber.received) {
      if (!stored.has(number)) invented++;
      repeated += Math.max(0, count - (stored.get(number) ?? count));
    }
    for (const number of stored.keys()) {
      if (subscriber.received.has(number)) continue;
      const row = times.get(number)!;
      if (isTold(row, subscriber.gaps)) missedAndTold++;
      else silent.push(describeSilent(row, subscriber.gaps));
    }
  }
  const gapsTold = subscribers.reduce((sum, { gaps }) => sum + gaps.length, 0);
  return { received, repeated, gapsTold, missedAndTold, missedSilently: silent.length, invented, silent };
}

function isTold(row: { readonly from: number; readonly until: number }, gaps: readonly Gap[]): boolean {
  return gaps.some(({ from, until }) => row.from <= until + SLACK_MS && row.until >= from - SLACK_MS);
}

function describeSilent(row: { readonly from: number; readonly until: number }, gaps: readonly Gap[]): string {
  const told = gaps.map(({ from, told, until }) => `${time(from)} to ${time(until)} told at ${time(told)}`);
  return `missed silently: written from ${time(row.from)} to ${time(row.until)}; gaps ${told.join(", ")}`;
}

/** Returns the longest pause between two acknowledged writes. */
function longestPause(acknowledged: readonly Request[], { at, until }: Failover): number {
  let before = at;
  let longest = 0;
  for (const { endedAt } of acknowledged) {
    if (endedAt > until) break;
    if (endedAt > at) longest = Math.max(longest, endedAt - before);
    before = Math.max(before, endedAt);
  }
  return Math.max(longest, until - before);
}
