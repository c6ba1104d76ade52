import type { Task, TaskList } from "graphile-worker";
import type { AsOwner } from "../../engine/database/as-owner.ts";
import type { TaskRunner } from "./task-runner.ts";

/** The job's name, `perform`, is the one that `private.queue_task` uses. */
export function makeTaskList({ runTask: perform }: TaskRunner): TaskList {
  const attempt: Task = (payload, { job }) =>
    perform((payload as { readonly task: string }).task, { isLast: job.attempts >= job.max_attempts });
  return { perform: attempt };
}

/** Requeues abandoned tasks, fails those that are out of attempts and deletes old ones. */
export async function maintainTasks(asOwner: AsOwner): Promise<void> {
  await asOwner((client) => client.query("select private.tend_tasks()"));
}
