import { describe, expect, test } from "vitest";
import type { RunningSession } from "#operations/admin-types";
import { buildLockTree, type LockNode } from "../../../studio/running/lock-tree.ts";

const session = (pid: number, ...waits_for: number[]): RunningSession => ({
  pid,
  waits_for,
  application: "",
  role: null,
  state: "active",
  wait: null,
  started_at: null,
  milliseconds: 0,
  transaction_ms: 0,
  statement: "",
  lock: null,
  request: null,
});
const pids = (nodes: readonly LockNode[]): unknown => nodes.map(({ pid, waiters }) => [pid, pids(waiters)]);
const tree = (...sessions: RunningSession[]) => pids(buildLockTree(sessions));

describe("the tree of locks", () => {
  test("is empty where nobody waits", () => {
    expect(tree(session(1), session(2))).toEqual([]);
  });

  test("has a waiter below the session that it waits for", () => {
    expect(tree(session(1), session(2, 1), session(3, 1))).toEqual([
      [
        1,
        [
          [2, []],
          [3, []],
        ],
      ],
    ]);
  });

  test("has a queue as a chain, although the last one waits for all before it", () => {
    expect(tree(session(1), session(2, 1), session(3, 1, 2))).toEqual([[1, [[2, [[3, []]]]]]]);
  });

  test("has a waiter below each of several sessions that share the lock", () => {
    expect(tree(session(1), session(2), session(3, 1, 2))).toEqual([
      [1, [[3, []]]],
      [2, [[3, []]]],
    ]);
  });

  test("has sessions that it does not know, and ends at sessions that wait for each other", () => {
    expect(tree(session(2, 0))).toEqual([[0, [[2, []]]]]);
    expect(tree(session(1, 2), session(2, 1))).toEqual([[1, [[2, []]]]]);
  });
});
