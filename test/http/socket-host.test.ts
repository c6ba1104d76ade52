import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { SequentialReader, SocketHost } from "../../http/socket-host.ts";
import { ByteQuota } from "../../runtime/memory/byte-quota.ts";

test("a socket whose handler accepts it after the others were drained is drained as well", async () => {
  const host = new SocketHost({
    server: {},
    corsOrigins: "*",
    csrf: { isAllowedOrigin: () => true },
    incoming: new ByteQuota(1_000),
    log: { debug() {}, error() {} },
  });
  const server = createServer().on("upgrade", async (request, socket, head) => {
    await host.close(0);
    host.accept(request, socket, head, ({ webSocket }) => ({
      receive: async () => {},
      close() {},
      drain: () => webSocket.close(1001),
      checkCredentials() {},
      onClosed() {},
    }));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const [closed] = (await once(client, "close")) as [CloseEvent];
  expect(closed.code).toBe(1001);
  server.close();
});

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
