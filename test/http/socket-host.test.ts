import { expect, test } from "vitest";
import { SequentialReader } from "../../http/socket-host.ts";

test("messages are processed in order, also after one that is slow or fails", async () => {
  const order = new SequentialReader();
  const read: string[] = [];
  expect(order.isIdle).toBe(true);
  const long = Promise.withResolvers<void>();
  const first = order.read(() => long.promise).then(() => read.push("first"));
  const failing = order.read(() => Promise.reject(new Error("unreadable"))).catch(() => read.push("failing"));
  const last = order.read(() => "last").then((text) => read.push(text));
  expect(order.isIdle).toBe(false);
  long.resolve();
  await Promise.all([first, failing, last]);
  expect(read).toEqual(["first", "failing", "last"]);
  expect(order.isIdle).toBe(true);
});
