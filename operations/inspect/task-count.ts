const TASK_COUNT = /^\s*Task Count: (\d+)$/gm;

/** Returns the most shards that a step of the plan reads, as Citus prints it; null for a plan without a distributed table. */
export function taskCountOf(plan: string): number | null {
  const counts = [...plan.matchAll(TASK_COUNT)].map(([, count]) => Number(count));
  return counts.length === 0 ? null : Math.max(...counts);
}
