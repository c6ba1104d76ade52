import type { Task, TaskList } from "graphile-worker";
import type { AsOwner } from "../../engine/database/as-owner.ts";
import type { Performer } from "./perform.ts";

/** The queue's word for it is that of `private.queue_task`. */
export function taskJobs({ perform }: Performer): TaskList {
  const attempt: Task = (payload, { job }) =>
    perform((payload as { readonly task: string }).task, { isLast: job.attempts >= job.max_attempts });
  return { perform: attempt };
}

/** Gives abandoned tasks to others, gives up hopeless ones and forgets old ones. */
export async function tendTasks(asOwner: AsOwner): Promise<void> {
  await asOwner((client) => client.query("select private.tend_tasks()"));
}
