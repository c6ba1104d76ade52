import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { MessageReader } from "../../../postgres/client/server-messages.ts";
import { openDatabase } from "../../../postgres/database/database.ts";
import { useDatabase } from "../../database.ts";
import { useFixture } from "../../fixture.ts";
import { openWire } from "../../postgres-wire.ts";
import { propertyRuns } from "../../property-runs.ts";
import { until } from "../../until.ts";
import { anon, PID, sql } from "./open.ts";

/** Returns the message that the client receives instead; null leaves it as it is. */
type Damage = (message: Buffer) => Buffer | null;

/** Damages one message of the next session that sends such a one, and ends the session then if it is to. */
type Plan = {
  readonly type: string;
  readonly damage: Damage;
  readonly ends: boolean;
  /** True if the session is not yet open. */
  readonly atStart?: boolean;
};

let plan: Plan | null = null;

/** Splits the bytes of Postgres into messages and lets the plan change one. */
function damageMessages() {
  let isStarted = false;
  let out: Buffer[] = [];
  let hasEnded = false;
  const reader = new MessageReader((type, buffer, start, end) => {
    const message = Buffer.alloc(5 + end - start);
    message[0] = type;
    message.writeInt32BE(4 + end - start, 1);
    buffer.copy(message, 5, start, end);
    const current = plan;
    const name = String.fromCharCode(type);
    const isMeant = current?.type === name && isStarted !== (current.atStart ?? false);
    const changed = isMeant ? current.damage(message) : null;
    if (name === "Z") isStarted = true;
    if (hasEnded) return;
    out.push(changed ?? message);
    if (!changed) return;
    plan = null;
    hasEnded = current!.ends;
  });
  return (said: Buffer) => {
    reader.read(said, said.length);
    const bytes = Buffer.concat(out);
    out = [];
    return { bytes, ends: hasEnded };
  };
}

const testDatabase = useDatabase({ template: "empty" });
const wire = useFixture(() => openWire(testDatabase.url, { alter: damageMessages }));
const log = { info: () => {}, warn: () => {} };
const database = useFixture(() => openDatabase({ url: wire.url, ownerUrl: testDatabase.ownerUrl, log, poolSize: 1 }));

function withLength(message: Buffer, length: number): Buffer {
  message.writeInt32BE(length, 1);
  return message;
}

/** The length of the first value of a row. */
function withValueLength(message: Buffer, length: number): Buffer {
  message.writeInt32BE(length, 7);
  return message;
}

const VALUES = ["the value", "another"];
const write = () => database.run(anon, sql("select $1, $2", ...VALUES));
const isOurs = (message: Buffer) => message.includes(VALUES[0]!);
const error = (body: string) => withLength(Buffer.concat([Buffer.from("E1234"), Buffer.from(body)]), 4 + body.length);

describe("a server that", () => {
  test.each<[string, string, (message: Buffer) => Buffer, RegExp]>([
    ["sends a negative length", "D", (message) => withLength(message, -1), /type D with -5 bytes/],
    ["sends no length", "D", (message) => withLength(message, 0), /type D with -4 bytes/],
    ["sends a huge length", "D", (message) => withLength(message, 0x7fffffff), /type D with 2147483643 bytes/],
    ["sends a huge length of a state", "Z", (message) => withLength(message, 0xffffff), /type Z with 16777211 bytes/],
    ["sends a value of negative length", "D", (message) => withValueLength(message, -2), /value that exceeds it/],
    ["sends a value of huge length", "D", (message) => withValueLength(message, 0x7fffffff), /value that exceeds it/],
    ["sends fewer values than it says", "D", (message) => message.fill(1, 5, 7), /value that exceeds it/],
    ["sends more values than it says", "D", (message) => message.fill(0, 5, 7), /more bytes than values/],
    ["sends an error without SQLSTATE", "C", () => error("SERROR\0Mproxy failed\0\0"), /SQLSTATE: proxy failed/],
    ["sends an error without an end", "C", () => error("SERROR\0C23505\0Mproxy"), /a text without an end/],
    ["sends an unknown state", "Z", (message) => message.fill("?", 5), /unknown state of the transaction/],
    ["sends one result too many", "C", (message) => Buffer.concat([message, message]), /fewer or more results/],
    ["sends one result too few", "C", () => Buffer.alloc(0), /fewer or more results/],
    ["sends garbage", "D", () => Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n"), /not Postgres's protocol/],
    ["sends a message of an unknown type", "C", () => Buffer.from([1, 0, 0, 0, 4]), /a message of type 1,/],
  ])("%s loses its session, and the next one serves", async (_what, type, damage, reason) => {
    await write();
    plan = { type, damage: (message) => (type !== "D" || isOurs(message) ? damage(message) : null), ends: false };
    await expect(write()).rejects.toMatchObject({ code: "08007", cause: { message: expect.stringMatching(reason) } });
    expect((await write()).rows).toEqual([VALUES]);
  });

  test.each([
    ["a row", "D", 20],
    ["a header", "D", 3],
    ["a state", "Z", 5],
  ])("ends the session in the middle of %s does not end the next one", async (_what, type, bytes) => {
    await write();
    plan = { type, damage: (message) => message.subarray(0, bytes), ends: true };
    await expect(write()).rejects.toMatchObject({
      code: "08007",
      cause: { message: expect.stringMatching(/ended|termin/) },
    });
    expect((await write()).rows).toEqual([VALUES]);
  });

  test("answers what nobody asked loses its session when it does", async () => {
    const pid = async () => (await database.run(anon, PID)).rows[0]![0];
    const before = await pid();
    plan = { type: "Z", damage: (message) => Buffer.concat([message, message]), ends: false };
    await database.run(anon, PID);
    await expect.poll(async () => (await pid()) !== before).toBe(true);
  });

  test("damages anything in any way never ends the process, and the next session serves", async () => {
    const damage = fc.record({
      type: fc.constantFrom("1", "2", "C", "D", "T", "Z"),
      changes: fc.array(fc.tuple(fc.nat(), fc.nat({ max: 255 })), { minLength: 1, maxLength: 4 }),
    });
    await fc.assert(
      fc.asyncProperty(damage, async ({ type, changes }) => {
        // A message with a greater length waits for the end of the session.
        plan = { type, damage: (message) => changed(message, changes), ends: true };
        await write().catch(() => {});
        plan = null;
        await until(() =>
          write().then(
            ({ rows }) => rows[0]![0] === VALUES[0],
            () => false,
          ),
        );
      }),
      { numRuns: propertyRuns(300) },
    );
  });
});

function changed(message: Buffer, changes: readonly (readonly [number, number])[]): Buffer {
  for (const [at, byte] of changes) message[at % message.length] = byte;
  return message;
}
