import { expect, test } from "vitest";
import { encodeBroadcastFrame } from "../../../realtime/protocol/messages.ts";
import { decodeBroadcastFrame } from "../../../studio/api/broadcast-frame.ts";

const frameOf = (encoding: "json" | "raw", payload: string) => {
  const frame = encodeBroadcastFrame("realtime:räume", { event: "grüße", encoding, payload: Buffer.from(payload) });
  return new Uint8Array(frame!).buffer;
};

test("a broadcast is decoded as the service encodes it", () => {
  expect(decodeBroadcastFrame(frameOf("json", '{"a":[1,"ü"]}'))).toEqual({
    topic: "realtime:räume",
    event: "grüße",
    payload: { a: [1, "ü"] },
  });
  expect(decodeBroadcastFrame(frameOf("raw", "four"))).toMatchObject({ payload: "4 bytes" });
});

test("another kind of frame is none", () => {
  expect(decodeBroadcastFrame(new Uint8Array([1, 0, 0, 0, 1]).buffer)).toBeNull();
});
