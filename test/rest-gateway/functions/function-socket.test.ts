import { EventEmitter, once } from "node:events";
import { describe, expect, test } from "vitest";
import type { AcceptedSocket } from "../../../http/socket-host.ts";
import { SocketMemory } from "../../../http/socket-memory.ts";
import { FunctionSocket } from "../../../rest-gateway/functions/function-socket.ts";

const MEGABYTE = 2 ** 20;

/** The connection to a client that takes messages when the test calls `flush`. */
class FakeWebSocket extends EventEmitter {
  readonly OPEN = 1;
  readyState = 1;
  isTerminated = false;
  readonly sent: unknown[] = [];
  readonly #waiting: (() => void)[] = [];

  send(data: unknown, taken: () => void): void {
    this.sent.push(data);
    this.#waiting.push(taken);
  }

  flush(): void {
    for (const taken of this.#waiting.splice(0)) taken();
  }

  close(...closing: readonly unknown[]): void {
    this.readyState = 2;
    this.emit("closing", closing);
  }

  terminate(): void {
    this.isTerminated = true;
  }
}

function open({ timeoutMs = 60_000, webSocketTotalBytes = 64 * MEGABYTE } = {}) {
  const memory = new SocketMemory({ webSocketBytes: MEGABYTE, webSocketTotalBytes });
  const webSocket = new FakeWebSocket();
  const orders: { type: string; bytes?: number }[] = [];
  let pauses = 0;
  let isLeft = false;
  const reading = { pause: () => void pauses++, resume: () => void pauses-- };
  const accepted = { webSocket, reading } as unknown as AcceptedSocket;
  const socket = new FunctionSocket(accepted, {
    memory,
    timeoutMs,
    onTimeout: () => webSocket.emit("timeout"),
    send: (order) => orders.push(order),
    onLeft: () => {
      isLeft = true;
    },
  });
  return { socket, webSocket, memory, orders, isPaused: () => pauses > 0, isLeft: () => isLeft };
}

const typesOf = (orders: readonly { readonly type: string }[]) => orders.map(({ type }) => type);

describe("the gateway's side of a function's socket", () => {
  test("reads no more than the function takes", async () => {
    const { socket, orders, memory, isPaused } = open();
    await socket.receive(Buffer.alloc(MEGABYTE - 1), true);
    expect(isPaused()).toBe(false);
    await socket.receive(Buffer.from("x"), false);
    expect([isPaused(), memory.incoming.held]).toEqual([true, MEGABYTE - 1 + 512]);
    expect(typesOf(orders)).toEqual(["opened", "message", "message"]);
    for (const { bytes } of orders.slice(1)) socket.handle({ type: "taken", bytes: bytes! });
    expect([isPaused(), memory.incoming.held]).toEqual([false, 0]);
  });

  test("confirms messages when the client's connection has taken them", () => {
    const { socket, webSocket, orders, memory } = open();
    socket.handle({ type: "message", data: "text", bytes: 4 });
    socket.handle({ type: "message", data: new Uint8Array(1000), bytes: 1000 });
    expect([webSocket.sent.length, typesOf(orders), memory.unsent.held]).toEqual([2, ["opened"], 1512]);
    webSocket.flush();
    expect(orders.slice(1)).toEqual([
      { type: "sent", bytes: 4 },
      { type: "sent", bytes: 1000 },
    ]);
    expect(memory.unsent.held).toBe(0);
  });

  test("is closed if all clients together leave too much unread", () => {
    const { socket, webSocket, orders, memory } = open({ webSocketTotalBytes: MEGABYTE });
    memory.unsent.hold(MEGABYTE);
    let closing: readonly unknown[] = [];
    webSocket.on("closing", (values) => {
      closing = values;
    });
    socket.handle({ type: "message", data: new Uint8Array(100_000), bytes: 100_000 });
    expect([closing, webSocket.isTerminated]).toEqual([
      [1013, "Too much waits to be read by clients: try again later"],
      true,
    ]);
    socket.onClosed(1006, "");
    expect(orders.at(-1)).toEqual({
      type: "closed",
      code: 1006,
      reason: "",
      failure: "Too much waits to be read by clients",
    });
  });

  test("is closed with 1001 if there is no message for the time of a response", async () => {
    const { webSocket } = open({ timeoutMs: 20 });
    expect(await once(webSocket, "closing")).toEqual([[1001, "There was no message for 0.02 s"]]);
  });

  test("reports a function that does not take a message in time, also if others follow", async () => {
    const { socket, webSocket } = open({ timeoutMs: 20 });
    const timeout = once(webSocket, "timeout");
    await socket.receive(Buffer.from("one"), false);
    const sending = setInterval(() => void socket.receive(Buffer.from("more"), false), 5);
    await timeout;
    clearInterval(sending);
    expect(webSocket.readyState).toBe(1);
  });

  test("passes nothing on while it closes, reads to the end, and frees all memory", async () => {
    const { socket, webSocket, orders, memory, isPaused, isLeft } = open();
    await socket.receive(Buffer.alloc(2 * MEGABYTE), true);
    expect(isPaused()).toBe(true);
    socket.handle({ type: "close", code: 4000, reason: "enough" });
    expect(isPaused()).toBe(false);
    await socket.receive(Buffer.from("late"), false);
    socket.handle({ type: "message", data: "late", bytes: 4 });
    expect([webSocket.sent, typesOf(orders)]).toEqual([[], ["opened", "message"]]);
    socket.onClosed(4000, "enough");
    expect([memory.incoming.held, memory.unsent.held, isLeft()]).toEqual([0, 0, false]);
    socket.handle({ type: "taken", bytes: 2 * MEGABYTE });
    socket.handle({ type: "left" });
    expect([memory.incoming.held, isLeft()]).toEqual([0, true]);
  });
});
