import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { noteAcceptedConnection, runStepwise } from "../../../runtime/concurrency/event-loop-sharing.ts";
import type { Stepwise } from "../../../runtime/concurrency/stepwise.ts";

const CONNECTIONS = 100;

/** Returns the number of slices that a long computation does while all clients connect at once. */
async function slicesUntilAccepted(accept: () => void): Promise<number> {
  let accepted = 0;
  let slices = 0;
  const server = createServer(() => {
    accepted++;
    accept();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  function* steps(): Stepwise<void> {
    yield;
    while (accepted < CONNECTIONS) {
      slices++;
      const end = performance.now() + 5;
      while (performance.now() < end);
      yield;
    }
  }
  const done = runStepwise(steps());
  const clients = Array.from({ length: CONNECTIONS }, () => connect(port, "127.0.0.1"));
  await done;
  for (const client of clients) client.destroy();
  server.close();
  return slices;
}

test("several connections are accepted between two slices of a long computation", async () => {
  expect(await slicesUntilAccepted(() => {})).toBeLessThan(CONNECTIONS / 2);
});

test("a long computation waits for connections that are being accepted", async () => {
  expect(await slicesUntilAccepted(noteAcceptedConnection)).toBeLessThan(5);
});

test("a long computation goes on while connections never stop coming", async () => {
  let isDone = false;
  function* steps(): Stepwise<void> {
    yield;
    yield;
  }
  const done = Promise.resolve(runStepwise(steps())).then(() => {
    isDone = true;
  });
  while (!isDone) {
    noteAcceptedConnection();
    await nextTurn();
  }
  await done;
  expect(isDone).toBe(true);
});
