import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { withClient } from "../../../postgres/client/with-client.ts";
import { useFixture } from "../../fixture.ts";
import { propertyRuns } from "../../property-runs.ts";

function message(type: string, body: string | Buffer, length = 4 + body.length): Buffer {
  const header = Buffer.alloc(5);
  header.write(type);
  header.writeInt32BE(length, 1);
  return Buffer.concat([header, Buffer.from(body)]);
}

const AUTHENTICATED = message("R", Buffer.alloc(4));
const READY = message("Z", "I");
const ROW_DESCRIPTION = message("T", Buffer.concat([Buffer.from("\0\x01a\0"), Buffer.alloc(18)]));
const ROW = message("D", "\0\x01\0\0\0\x03one");
const COMPLETE = message("C", "SELECT 1\0");

/** The messages of a server that is no Postgres: at once, to the first message, and to a query. */
type Script = { readonly start: Buffer; readonly answer: Buffer; readonly ends: boolean };

const WELL_FORMED: Script = {
  start: Buffer.concat([AUTHENTICATED, message("S", "TimeZone\0UTC\0"), message("K", Buffer.alloc(8)), READY]),
  answer: Buffer.concat([message("N", "SNOTICE\0C00000\0Mhm\0\0"), ROW_DESCRIPTION, ROW, COMPLETE, READY]),
  ends: false,
};

let script = WELL_FORMED;
const sockets = new Set<Socket>();
const server = useFixture(() =>
  createServer((socket) => {
    const { start, answer, ends } = script;
    sockets.add(socket.on("error", () => {}).on("close", () => sockets.delete(socket)));
    socket.once("data", () => {
      socket.write(start);
      socket.once("data", () => (ends ? socket.end(answer) : socket.write(answer)));
      if (ends && start !== WELL_FORMED.start) socket.end();
    });
  }),
);
beforeAll(() => once(server.listen(0, "127.0.0.1"), "listening"));
afterAll(() => {
  for (const socket of sockets) socket.destroy();
});

/** The value that a query returns. */
async function ask(current: Script): Promise<unknown> {
  script = current;
  const { port } = server.address() as AddressInfo;
  const url = `postgresql://anybody@127.0.0.1:${port}/any?target_session_attrs=any`;
  return withClient(url, async (client) => (await client.query("select 'one' as a")).rows);
}

const answering = (...answer: readonly Buffer[]) => ({ ...WELL_FORMED, answer: Buffer.concat(answer) });
const starting = (...start: readonly Buffer[]) => ({ ...WELL_FORMED, start: Buffer.concat(start) });

describe("a session of pg", () => {
  test("returns the rows of a server that keeps to the protocol", async () => {
    expect(await ask(WELL_FORMED)).toEqual([{ a: "one" }]);
  });

  test.each<[string, Script, string]>([
    ["an error without an end", answering(message("E", "SERROR\0C23505\0Moops\0")), "an error without an end"],
    ["a notice without an end", answering(message("N", "SNOTICE\0Moops")), "an error without an end"],
    ["an error of negative length", answering(message("E", "", -1)), "type E with -5 bytes"],
    ["a row of two thousand million bytes", answering(ROW_DESCRIPTION, message("D", "", 0x7fffffff)), "type D with"],
    ["a state of seventy thousand bytes", answering(message("Z", "", 70_000)), "type Z with 69996 bytes"],
    [
      "a row with a value of negative length",
      answering(message("D", "\0\x01\xff\xff\xff\xfe")),
      "value that exceeds it",
    ],
    ["a row with a value longer than itself", answering(message("D", "\0\x01\0\0\0\x09one")), "value that exceeds it"],
    ["a description without an end", answering(message("T", "\0\x02a\0")), "a text without an end"],
    ["a message of an unknown type", answering(message("y", "")), "a message of type y"],
    ["HTTP to a query", answering(Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n")), "type H with"],
    ["HTTP to the first message", starting(Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n")), "type H with"],
    ["an unknown authentication", starting(message("R", "\0\0\0\x63")), "Unknown authenticationOk message type 99"],
    ["garbage after the authentication", starting(AUTHENTICATED, Buffer.alloc(64)), "type 0 with -4 bytes"],
  ])("ends after %s, and says so", async (_what, current, reason) => {
    await expect(ask(current)).rejects.toThrow(reason);
  });

  test("survives whatever is changed in what a server sends", async () => {
    const change = fc.array(fc.tuple(fc.nat(), fc.nat({ max: 255 })), { minLength: 1, maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(change, fc.boolean(), async (changes, isAtStart) => {
        const bytes = Buffer.from(isAtStart ? WELL_FORMED.start : WELL_FORMED.answer);
        for (const [at, byte] of changes) bytes[at % bytes.length] = byte;
        await ask({ ...(isAtStart ? starting(bytes) : answering(bytes)), ends: true }).catch(() => {});
      }),
      { numRuns: propertyRuns(500) },
    );
    expect(await ask(WELL_FORMED)).toEqual([{ a: "one" }]);
  });
});
