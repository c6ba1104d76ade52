import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { expect, test } from "vitest";
import { runStepwise, type Stepwise } from "../../../engine/concurrency/stepwise.ts";

const CONNECTIONS = 100;

test("several connections are accepted between two slices of a long computation", async () => {
  let accepted = 0;
  let slices = 0;
  const server = createServer(() => accepted++).listen(0, "127.0.0.1");
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
  expect(slices).toBeLessThan(CONNECTIONS / 2);
  for (const client of clients) client.destroy();
  server.close();
});
