import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { startResponsiveTimer } from "../../../runtime/concurrency/responsive-timer.ts";

test("a timer ends after its time", async () => {
  const start = performance.now();
  await new Promise<void>((resolve) => startResponsiveTimer(40, resolve));
  expect(performance.now() - start).toBeGreaterThan(30);
});

test("one that is stopped does not", async () => {
  let ended = false;
  startResponsiveTimer(20, () => {
    ended = true;
  })();
  await sleep(60);
  expect(ended).toBe(false);
});

test("an answer that arrives while the event loop is blocked is read before the timer ends", async () => {
  const server = createServer((socket) => socket.on("error", () => {}).end("here"));
  await once(server.listen(0, "127.0.0.1"), "listening");
  const heard: string[] = [];
  const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
  client.on("data", (data) => heard.push(String(data)));
  const ended = new Promise<void>((resolve) => startResponsiveTimer(1_000, resolve));
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_200);
  await ended;
  expect(heard).toEqual(["here"]);
  server.close();
});
