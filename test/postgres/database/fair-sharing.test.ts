import { describe, expect, test } from "vitest";
import {
  ConnectionShares,
  sharesForReads,
  sharesForStreams,
  sharesForWrites,
} from "../../../postgres/database/fair-sharing.ts";
import type { ShareHolder } from "../../../postgres/database/statement.ts";

const SIZES = Array.from({ length: 40 }, (_, index) => index + 1);

function claimant(claims: Partial<ShareHolder> = {}): ShareHolder {
  return { caller: "authenticated user 7", isAnonymous: false, relations: [], isLong: true, ...claims };
}

const each = (index: number, claims: Partial<ShareHolder> = {}) => claimant({ caller: `caller ${index}`, ...claims });

/** Returns how many of them may run at once. */
function mostOf(shares: ConnectionShares, claimantOf: (index: number) => ShareHolder): number {
  const running: ShareHolder[] = [];
  for (let index = 0; index < 100 && shares.admits(claimantOf(index)); index++) {
    if (shares.take(claimantOf(index))) running.push(claimantOf(index));
  }
  for (const one of running) shares.giveBack(one);
  return running.length;
}

describe("the shares of five connections for slow reads", () => {
  const shares = new ConnectionShares(sharesForReads(5, Number.POSITIVE_INFINITY));

  test.each([
    ["a user", 3, () => claimant()],
    ["an anonymous caller", 2, () => claimant({ isAnonymous: true })],
    ["all anonymous callers together", 3, (index: number) => each(index, { isAnonymous: true })],
    ["a relation, whoever reads it", 2, (index: number) => each(index, { relations: ['"a"."b"'] })],
    ["statements that take long", 4, (index: number) => each(index)],
  ])("%s has %i", (_who, most, claimantOf) => {
    expect(mostOf(shares, claimantOf)).toBe(most);
    // Shares that were given back can be taken again.
    expect(mostOf(shares, claimantOf)).toBe(most);
  });

  test.each([
    [1, 1],
    [2, 1],
    [4, 2],
    [64, 3],
  ])("of anonymous callers, beside a service with %i processors in common, are %i", (processors, most) => {
    const limited = new ConnectionShares(sharesForReads(5, processors));
    expect(mostOf(limited, (index) => each(index, { isAnonymous: true }))).toBe(most);
    expect(mostOf(limited, () => claimant({ isAnonymous: true }))).toBe(Math.min(2, most));
    expect(mostOf(limited, (index) => each(index))).toBe(4);
  });

  test("statements that are not known to be slow have all of them", () => {
    for (let index = 0; index < 4; index++) shares.take(each(index));
    expect(shares.admits(claimant())).toBe(false);
    expect(shares.admits(claimant({ isLong: false }))).toBe(true);
    expect(shares.take(claimant({ isLong: false }))).toBe(false);
    for (let index = 0; index < 4; index++) shares.giveBack(each(index));
  });

  test("a statement counts for each relation that it names", () => {
    const both = claimant({ caller: "x", relations: ["a", "b"] });
    for (const _ of [0, 1]) shares.take(both);
    expect(shares.admits(claimant({ relations: ["b", "c"] }))).toBe(false);
    expect(shares.admits(claimant({ relations: ["c"] }))).toBe(true);
    for (const _ of [0, 1]) shares.giveBack(both);
  });
});

test("anonymous callers leave one of the connections for streams to others, who may have all", () => {
  const shares = new ConnectionShares(sharesForStreams(3));
  const stream = (index: number, claims: Partial<ShareHolder> = {}) => each(index, { isLong: false, ...claims });
  expect(mostOf(shares, (index) => stream(index, { isAnonymous: true }))).toBe(2);
  expect(mostOf(shares, () => stream(0, { isAnonymous: true }))).toBe(2);
  expect(mostOf(shares, () => stream(0, { relations: ["a"] }))).toBe(3);
});

describe("the shares of ten connections for writes", () => {
  const write = (index: number, claims: Partial<ShareHolder> = {}) => each(index, { isLong: false, ...claims });
  const ofTable = (index: number) => write(index, { relations: ["a"] });
  const ofOne = () => write(0);
  const ofStranger = () => write(0, { isAnonymous: true });
  const ofStrangers = (index: number) => write(index, { isAnonymous: true });

  test("are all of them while no statement is slow", () => {
    const shares = new ConnectionShares(sharesForWrites(10));
    for (const claimantOf of [ofTable, ofOne, ofStranger, ofStrangers]) expect(mostOf(shares, claimantOf)).toBe(10);
  });

  test("are fewer for the caller and for the relation of a slow statement, and for anonymous callers", () => {
    const shares = new ConnectionShares(sharesForWrites(10));
    shares.noteLong(write(0, { relations: ["a"] }), 0);
    expect(mostOf(shares, ofTable)).toBe(4);
    expect(mostOf(shares, ofOne)).toBe(6);
    expect(mostOf(shares, ofStranger)).toBe(4);
    expect(mostOf(shares, ofStrangers)).toBe(6);
    expect(mostOf(shares, (index) => write(index + 1, { relations: ["b"] }))).toBe(10);
  });

  test("apply for ten seconds", () => {
    const shares = new ConnectionShares(sharesForWrites(10));
    shares.noteLong(write(0, { relations: ["a"] }), 0);
    shares.forget(9_999);
    expect(mostOf(shares, ofTable)).toBe(4);
    shares.forget(10_001);
    expect(mostOf(shares, ofTable)).toBe(10);
  });

  test("are remembered for a limited number of callers", () => {
    const shares = new ConnectionShares(sharesForWrites(10));
    for (let index = 0; index < 10_000; index++) shares.noteLong(write(index), 0);
    const limited = Array.from({ length: 10_000 }, (_, index) => mostOf(shares, () => write(index)) < 10);
    expect(limited.filter(Boolean).length).toBeLessThanOrEqual(1_000);
  });
});

test.each(SIZES)(
  "of %i connections each share is at least one, and leaves some to others if there are enough",
  (size) => {
    for (const limits of [sharesForReads(size, Number.POSITIVE_INFINITY), sharesForWrites(size)]) {
      const { all, caller, anonymousCaller, anonymous, relation } = limits;
      for (const share of [all, caller, anonymousCaller, anonymous, relation]) expect(share).toBeGreaterThanOrEqual(1);
      if (size < 5) continue;
      expect(relation).toBeLessThan(caller);
      expect(anonymousCaller).toBeLessThan(anonymous);
      expect(caller).toBeLessThan(all);
      expect(anonymous).toBeLessThan(all);
    }
  },
);
