import type { RunningSession } from "#operations/admin-types";

export type LockNode = {
  readonly pid: number;
  /** Null for a prepared transaction, or for a session that has ended meanwhile. */
  readonly session: RunningSession | null;
  readonly waiters: readonly LockNode[];
};

/** Returns the waiting sessions as a tree: each session is below the last one that it waits for. */
export function buildLockTree(sessions: readonly RunningSession[]): readonly LockNode[] {
  const byPid = new Map(sessions.map((session) => [session.pid, session]));
  const waiting = sessions.filter(({ waits_for }) => waits_for.length > 0);
  const waitsFor = (pid: number): readonly number[] => byPid.get(pid)?.waits_for ?? [];
  /** A blocker that another blocker also waits for is above that one. */
  const parentsOf = ({ waits_for: blockers }: RunningSession) => {
    const direct = blockers.filter((pid) => !blockers.some((other) => other !== pid && waitsFor(other).includes(pid)));
    return direct.length > 0 ? direct : blockers;
  };
  const waitersOf = (pid: number) => waiting.filter((session) => parentsOf(session).includes(pid));
  const shown = new Set<number>();
  const toNode = (pid: number, above: ReadonlySet<number>): LockNode => {
    shown.add(pid);
    const path = new Set([...above, pid]);
    const below = waitersOf(pid).filter((session) => !path.has(session.pid));
    return { pid, session: byPid.get(pid) ?? null, waiters: below.map((session) => toNode(session.pid, path)) };
  };
  const blockers = [...new Set(waiting.flatMap(({ waits_for }) => waits_for))];
  const roots = blockers.filter((pid) => waitsFor(pid).length === 0).map((pid) => toNode(pid, new Set()));
  // These sessions wait for each other, until Postgres ends the deadlock.
  const circles = waiting.filter(({ pid }) => !shown.has(pid));
  return [...roots, ...circles.flatMap(({ pid }) => (shown.has(pid) ? [] : [toNode(pid, new Set())]))];
}
