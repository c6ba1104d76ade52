import { describe, expect, test } from "vitest";
import {
  encodeBroadcastFrame,
  encodeBroadcastPayload,
  encodeMessage,
  parseBroadcastPush,
  parseClientMessage,
  parseProtocolVersion,
  sliceExactPayload,
} from "../../../realtime/protocol/messages.ts";

const JOIN = { joinRef: "6", ref: "6", topic: "realtime:room1", event: "phx_join", payload: { a: 1 } };

describe("a message", () => {
  test("is an object in version 1.0.0 and an array in 2.0.0, in both directions", () => {
    const object = '{"topic":"realtime:room1","event":"phx_join","payload":{"a":1},"ref":"6","join_ref":"6"}';
    const list = '["6","6","realtime:room1","phx_join",{"a":1}]';
    expect(parseClientMessage(object, "1.0.0")).toEqual(JOIN);
    expect(parseClientMessage(list, "2.0.0")).toEqual(JOIN);
    expect(encodeMessage("1.0.0", JOIN, '{"a":1}')).toBe(object);
    expect(encodeMessage("2.0.0", JOIN, '{"a":1}')).toBe(list);
  });

  test("has no refs when the server sends it unasked", () => {
    const push = { ...JOIN, joinRef: null, ref: null };
    expect(encodeMessage("1.0.0", push, "{}")).toBe(
      '{"topic":"realtime:room1","event":"phx_join","payload":{},"ref":null}',
    );
    expect(encodeMessage("2.0.0", push, "{}")).toBe('[null,null,"realtime:room1","phx_join",{}]');
  });

  test.each(["", "x", "[]", "[1,2,3]", '["1","1",null,"e",{}]', '{"topic":"t"}', "null", "7"])(
    "%j is invalid",
    (text) => {
      expect(parseClientMessage(text, "1.0.0")).toBeNull();
      expect(parseClientMessage(text, "2.0.0")).toBeNull();
    },
  );

  test("versions are recognized by their first number", () => {
    expect([null, "1.0.0", "2.0.0", "2.1", "3.0.0", "x"].map(parseProtocolVersion)).toEqual([
      "1.0.0",
      "1.0.0",
      "2.0.0",
      "2.0.0",
      null,
      null,
    ]);
  });
});

describe("the text of a payload", () => {
  const PAYLOAD = '{"a":"}, \\"topic\\":\\"]","b":[{ }] }';

  test.each([`["1","2","realtime:a","broadcast",${PAYLOAD}]`, ` [ null , 7,"a \\" , ]","b" , ${PAYLOAD} ] `])(
    "is located at the end of an array: %s",
    (text) => {
      expect(sliceExactPayload(text, "2.0.0")?.trim()).toBe(PAYLOAD);
    },
  );

  test.each([
    `{"topic":"t","event":"e","payload":${PAYLOAD},"ref":"1","join_ref":null}`,
    `{"payload":${PAYLOAD}}`,
    ` { "ref" : 7 , "payload" : ${PAYLOAD} , "topic" : "a,\\"b" } `,
  ])("is located anywhere in an object: %s", (text) => {
    expect(sliceExactPayload(text, "1.0.0")?.trim()).toBe(PAYLOAD);
  });

  test.each([
    ["2.0.0", `[{},"2","realtime:a","broadcast",${PAYLOAD}]`],
    ["1.0.0", `{"other":1,"payload":${PAYLOAD}}`],
    ["1.0.0", `{"payload":{},"payload":${PAYLOAD}}`],
    ["1.0.0", `{"payload":${PAYLOAD},"topic":"}"}`],
    ["1.0.0", `{"payload":"}"}`],
  ] as const)("is not guessed, in version %s: %s", (version, text) => {
    expect(sliceExactPayload(text, version)).toBeNull();
  });
});

describe("a broadcast", () => {
  const push = Buffer.concat([Buffer.from([3, 1, 1, 14, 2, 0, 1]), Buffer.from('67realtime:room1hi{"a":1}')]);
  const broadcast = { event: "hi", encoding: "json", payload: Buffer.from('{"a":1}') } as const;

  test("arrives as a frame of kind 3 and is sent as one of kind 4, with its payload unchanged", () => {
    expect(parseBroadcastPush(push)).toEqual({
      joinRef: "6",
      ref: "7",
      topic: "realtime:room1",
      event: "broadcast",
      broadcast,
    });
    const passedOn = Buffer.concat([Buffer.from([4, 14, 2, 0, 1]), Buffer.from('realtime:room1hi{"a":1}')]);
    expect(encodeBroadcastFrame("realtime:room1", broadcast)).toEqual(passedOn);
    expect(encodeBroadcastPayload(broadcast)).toBe('{"type":"broadcast","event":"hi","payload":{"a":1}}');
  });

  test("has lengths in bytes, and is sent as text where a name is too long", () => {
    const frame = encodeBroadcastFrame("realtime:ä", { ...broadcast, event: "€" })!;
    expect([...frame.subarray(0, 5)]).toEqual([4, 11, 3, 0, 1]);
    expect(encodeBroadcastFrame("realtime:x", { ...broadcast, event: "e".repeat(256) })).toBeNull();
  });

  test("may have metadata, which is ignored", () => {
    const frame = Buffer.concat([Buffer.from([3, 0, 0, 1, 1, 2, 0]), Buffer.from("te{}\x01\x02")]);
    expect(parseBroadcastPush(frame)).toMatchObject({
      joinRef: null,
      ref: null,
      topic: "t",
      broadcast: { event: "e", encoding: "raw" },
    });
    expect(parseBroadcastPush(frame)!.broadcast.payload).toEqual(Buffer.from([1, 2]));
  });

  test.each([[[]], [[3, 0, 0]], [[4, 1, 1, 0, 1, 0, 0]], [[3, 9, 9, 9, 9, 9, 1]], [[3, 0, 0, 0, 0, 0, 7]]])(
    "%j is invalid",
    (bytes) => {
      expect(parseBroadcastPush(Buffer.from(bytes))).toBeNull();
    },
  );
});
