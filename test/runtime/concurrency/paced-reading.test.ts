import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import { paceReading } from "../../../runtime/concurrency/event-loop-sharing.ts";

const CLIENTS = 20;
const EACH_SENDS = 2 ** 20;
/** A piece or two of each of those that are resumed in it; each sends twice as much. */
const MOST_IN_A_TURN = EACH_SENDS / 2 + 64 * 1024;

test("however many connections send much at once, little is read in a turn of the event loop, and all in the end", async () => {
  const accepted: Socket[] = [];
  let bytes = 0;
  const server = createServer((socket) => {
    accepted.push(socket);
    socket.on("data", ({ length }) => {
      bytes += length;
      paceReading(socket, length);
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const clients = Array.from({ length: CLIENTS }, () => connect(port, "127.0.0.1"));
  await Promise.all(clients.map((client) => once(client, "connect")));
  for (const client of clients) client.resume().end(Buffer.alloc(EACH_SENDS));

  const turns: number[] = [];
  while (bytes < CLIENTS * EACH_SENDS) {
    const before = bytes;
    await turn();
    if (bytes > before) turns.push(bytes - before);
  }
  const median = turns.toSorted((one, other) => one - other)[Math.floor(turns.length / 2)];
  expect(median).toBeLessThanOrEqual(MOST_IN_A_TURN);
  server.close();
  await once(server, "close");
});
