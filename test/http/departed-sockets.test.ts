import { expect, test } from "vitest";
import { DepartedSockets } from "../../http/departed-sockets.ts";

/** A large object that nothing refers to. */
const makeGarbage = () => new WeakRef(Array.from({ length: 1000 }, () => ({})));

/** A weak reference keeps its target until the end of the task that made or read it. */
const laterTasks = async () => {
  for (let task = 0; task < 20; task++) await new Promise((resolve) => setImmediate(resolve));
};

test("garbage is collected once many sockets have left and no others leave, and once for each crowd", async () => {
  const sockets = new DepartedSockets();
  const garbage = makeGarbage();
  await laterTasks();
  for (const open of [1500, 900, 500]) sockets.observe(open);
  await laterTasks();
  expect(garbage.deref()).toBeDefined();
  await laterTasks();
  sockets.observe(500);
  expect(garbage.deref()).toBeUndefined();

  const later = makeGarbage();
  await laterTasks();
  for (const open of [500, 0, 0]) sockets.observe(open);
  await laterTasks();
  expect(later.deref()).toBeDefined();
});
