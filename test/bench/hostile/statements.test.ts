import { describe, expect, test } from "vitest";
import { HONEST_KINDS, type HonestResult } from "../../../bench/hostile/honest.ts";
import type { HostileResult } from "../../../bench/hostile/run/hostile.ts";
import { statementsOf } from "../../../bench/hostile/run/statements.ts";
import { percentile } from "../../../bench/measuring/percentile.ts";

function honest(p99: number): HonestResult {
  const measured = { count: 100, failures: {}, p50: 1, p99 };
  return Object.fromEntries(HONEST_KINDS.map((kind) => [kind, measured])) as HonestResult;
}

const GOOD: HostileResult = {
  quiet: honest(10),
  hostile: honest(49),
  attacks: { bodies: { outcomes: { "413": 7 }, faults: [] } },
  misplaced: 0,
  before: 200,
  peak: 699,
  held: 300,
  quietHold: 10,
  longestHold: 50,
  ending: null,
};

const missed = (result: HostileResult) =>
  statementsOf(result)
    .filter(({ isMet }) => !isMet)
    .map(({ what }) => what);

test("nothing measured is no time, but for ever", () => {
  expect(percentile([], 0.99)).toBe(Number.POSITIVE_INFINITY);
  expect(percentile([3, 1, 2], 0.5)).toBe(2);
});

describe("the requirements during an attack", () => {
  test("are met if honest callers are hardly affected, and nothing else happens", () => {
    expect(missed(GOOD)).toEqual([]);
  });

  test("let honest callers wait ten times as long if there are several attacks at once, five times for one alone", () => {
    const attack = { outcomes: {}, faults: [] };
    const slower = (p99: number, attacks: HostileResult["attacks"]) =>
      missed({ ...GOOD, hostile: { ...honest(10), read: honest(p99).read }, attacks });
    expect(slower(99, { shapes: attack, ddl: attack })).toEqual([]);
    expect(slower(100, { shapes: attack, ddl: attack })[0]).toMatch(/^read: /);
    expect(slower(49, { ddl: attack, kills: attack })).toEqual([]);
    expect(slower(50, { ddl: attack, kills: attack })[0]).toMatch(/^read: /);
  });

  test.each<[string, Partial<HostileResult>, RegExp]>([
    [
      "an honest caller waits five times as long",
      { hostile: { ...honest(10), read: { ...honest(50).read } } },
      /^read: /,
    ],
    [
      "too many honest requests fail",
      { hostile: { ...honest(10), write: honest(Infinity).write } },
      /^write: p99 for ever/,
    ],
    ["there was nothing to compare with", { quiet: honest(Infinity), hostile: honest(Infinity) }, /^read: /],
    [
      "nothing was measured",
      { hostile: { ...honest(10), read: { ...honest(percentile([], 0.99)).read, count: 0 } } },
      /^read: p99 for ever/,
    ],
    ["it takes too much memory", { peak: 700 }, /^memory: 700 MiB/],
    ["the event loop is held for too long", { longestHold: 51 }, /^event loop: held for 51 ms/],
    ["it ends", { ending: "SIGKILL" }, /^no crash: it ended by SIGKILL/],
    ["rows come to another tenant", { misplaced: 1 }, /^rows in another tenant: 1/],
    [
      "an attack has measured what must not be",
      {
        attacks: {
          kills: { outcomes: {}, faults: [], statements: [{ what: "lost: 1", isMet: false, target: "0" }] },
        },
      },
      /^kills: lost: 1/,
    ],
    ["an attack finds a fault", { attacks: { bodies: { outcomes: {}, faults: ["a fault"] } } }, /^bodies: a fault/],
  ])("are missed when %s", (_when, change, what) => {
    expect(missed({ ...GOOD, ...change })[0]).toMatch(what);
  });
});
