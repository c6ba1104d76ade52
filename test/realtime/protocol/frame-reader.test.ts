import { expect, test } from "vitest";
import { FrameReader } from "../../../realtime/protocol/frame-reader.ts";

test("large frames of one caller are read one after another, on any number of sockets, and those of others at the same time", async () => {
  const order: string[] = [];
  const frame = Buffer.from(JSON.stringify(["1", "2", "realtime:room", "broadcast", { text: "x".repeat(20_000) }]));
  const read = (socket: string, owner: string) =>
    new FrameReader("2.0.0", owner).read(frame, false, async () => void order.push(socket));
  const frames = [...Array.from({ length: 10 }, (_, index) => read(`Ann's ${index}`, "Ann")), read("Ben's", "Ben")];
  await Promise.all(frames);
  expect(order).toHaveLength(11);
  expect(order.indexOf("Ben's")).toBeLessThan(order.indexOf("Ann's 9"));
});
