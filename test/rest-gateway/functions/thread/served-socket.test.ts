import { describe, expect, test } from "vitest";
import { ServedSocket } from "../../../../rest-gateway/functions/thread/served-socket.ts";
import { until } from "../../../until.ts";

function makeSocket() {
  const reports: { type: string; data?: unknown }[] = [];
  const socket = new ServedSocket({ url: "ws://x/a", protocol: "", report: (message) => reports.push(message) });
  const events: string[] = [];
  for (const type of ["open", "error", "close"]) socket.addEventListener(type, () => events.push(type));
  return { socket, reports, events };
}

const MEGABYTE = 2 ** 20;

describe("the socket of Deno.upgradeWebSocket", () => {
  test("has the members of a WebSocket", () => {
    const { socket } = makeSocket();
    expect([ServedSocket.OPEN, socket.CONNECTING, socket.readyState, socket.extensions, socket.binaryType]).toEqual([
      ...[1, 0, 0],
      "",
      "blob",
    ]);
    expect(() => socket.send("x")).toThrow(expect.objectContaining({ name: "InvalidStateError" }));
    socket.handle({ type: "opened" });
    expect([socket.readyState, socket.bufferedAmount]).toEqual([1, 0]);
    socket.send("ä");
    expect(socket.bufferedAmount).toBe(2);
    socket.handle({ type: "sent", bytes: 2 });
    expect(socket.bufferedAmount).toBe(0);
  });

  test("sends copies, and waits for a Blob before what follows it", async () => {
    const { socket, reports } = makeSocket();
    socket.handle({ type: "opened" });
    const bytes = new Uint8Array([1, 2, 3]);
    socket.send(bytes.subarray(1));
    bytes.fill(9);
    socket.send(new Blob(["blob"]));
    socket.send("after");
    socket.send(new Uint8Array([4]).buffer);
    socket.close();
    socket.send("never");
    await until(() => reports.length === 5);
    expect(reports.map(({ type, data }) => data ?? type)).toEqual([
      new Uint8Array([2, 3]),
      new Uint8Array(Buffer.from("blob")),
      "after",
      new Uint8Array([4]),
      "close",
    ]);
  });

  test.each([1004, 1005, 1006, 1015, 2999, 5000, 0, "x", {}])("is not closed with the code %j", (code) => {
    const { socket } = makeSocket();
    expect(() => socket.close(code)).toThrow(expect.objectContaining({ name: "InvalidAccessError" }));
  });

  test("is closed with codes of servers, and a reason of 123 bytes", () => {
    const { socket, reports } = makeSocket();
    socket.handle({ type: "opened" });
    expect(() => socket.close(1000, "ä".repeat(62))).toThrow(expect.objectContaining({ name: "SyntaxError" }));
    socket.close(1011, "x".repeat(123));
    socket.close(1000);
    expect(reports).toEqual([{ type: "close", code: 1011, reason: "x".repeat(123) }]);
    expect(socket.readyState).toBe(2);
  });

  test("is closed with numbers and texts, whatever the function gives", () => {
    const { socket, reports } = makeSocket();
    socket.handle({ type: "opened" });
    socket.close("4000", new Uint16Array([1, 2]));
    expect(reports).toEqual([{ type: "close", code: 4000, reason: "1,2" }]);
  });

  test("confirms each message, and passes on none while it closes", () => {
    const { socket, reports } = makeSocket();
    const received: unknown[] = [];
    socket.onmessage = (event) => received.push((event as MessageEvent).data);
    socket.binaryType = "arraybuffer";
    socket.handle({ type: "opened" });
    socket.handle({ type: "message", data: "a", bytes: 512 });
    socket.handle({ type: "message", data: new Uint8Array([1]), bytes: 513 });
    socket.close();
    socket.handle({ type: "message", data: "late", bytes: 514 });
    expect(received).toEqual(["a", new Uint8Array([1]).buffer]);
    expect(reports.filter(({ type }) => type === "taken")).toEqual(
      [512, 513, 514].map((bytes) => ({ type: "taken", bytes })),
    );
  });

  test("ends with an error if the connection was lost, and without one if it was closed", async () => {
    const lost = makeSocket();
    lost.socket.handle({ type: "opened" });
    lost.socket.handle({ type: "closed", code: 1006, reason: "", failure: null });
    const closed = makeSocket();
    closed.socket.handle({ type: "opened" });
    closed.socket.handle({ type: "closed", code: 1001, reason: "gone", failure: null });
    closed.socket.handle({ type: "closed", code: 1001, reason: "gone", failure: null });
    await Promise.all([lost.socket.left, closed.socket.left]);
    expect([lost.events, closed.events]).toEqual([
      ["open", "error", "close"],
      ["open", "close"],
    ]);
  });

  test("is closed with 1013 if more than 16 MiB wait, and small messages count for 256 bytes", () => {
    const { socket, reports } = makeSocket();
    socket.handle({ type: "opened" });
    for (let count = 0; count < 65_536; count++) socket.send("x");
    expect([socket.readyState, socket.bufferedAmount]).toEqual([1, 65_536]);
    socket.send("x");
    expect(reports.at(-1)).toEqual({
      type: "close",
      code: 1013,
      reason: "More than 16 MiB wait for the client to read them",
    });
    expect(socket.readyState).toBe(2);
    const large = makeSocket();
    large.socket.handle({ type: "opened" });
    large.socket.send(new Uint8Array(16 * MEGABYTE));
    expect(large.socket.readyState).toBe(1);
    large.socket.send("x");
    expect(large.socket.readyState).toBe(2);
  });
});
