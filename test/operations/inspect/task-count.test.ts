import { expect, test } from "vitest";
import { taskCountOf } from "../../../operations/inspect/task-count.ts";

// The form of the plans of Citus 12.
const citusPlan = (tasks: number) => `Aggregate (actual rows=1 loops=1)
  ->  Custom Scan (Citus Adaptive) (actual rows=2 loops=1)
        Task Count: ${tasks}
        Tasks Shown: One of ${tasks}
        ->  Task
              Node: host=worker-1 port=5432 dbname=postgres
              ->  Seq Scan on orders_102040 orders (actual rows=2 loops=1)
                    Filter: (tenant = 1)`;

test("the number of tasks is that of the step with the most", () => {
  expect(taskCountOf(citusPlan(1))).toBe(1);
  expect(taskCountOf([citusPlan(1), citusPlan(32), citusPlan(4)].join("\n"))).toBe(32);
});

test("other plans have none, whatever their conditions say", () => {
  expect(taskCountOf("Seq Scan on tasks\n  Filter: (note = 'Task Count: 7')")).toBeNull();
});
