import type { AsOwner } from "../database/as-owner.ts";

const COUNT = `
  select count(*) filter (where status = 'queued')::int as queued, count(*) filter (where status = 'running')::int as running
  from private.tasks where finished_at is null`;

export type TaskCounts = { readonly queued: number; readonly running: number };

/** Counts the tasks of all gateways, which share the queue. */
export async function countTasks(asOwner: AsOwner): Promise<TaskCounts> {
  const { rows } = await asOwner((client) => client.query<TaskCounts>(COUNT));
  return rows[0]!;
}
