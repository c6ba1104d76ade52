import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { type Caller, callerFromClaims } from "../../accounts/identity/caller.ts";
import { sendEvents } from "../../http/event-stream.ts";

const callerUntil = (expiresAt: number | null) =>
  callerFromClaims({ kind: "known", claimsText: '{"role":"authenticated"}', expiresAt });

/** A source without events: it notes how long it was to wait. */
function idleSource(waits: number[], most: number) {
  return {
    expired: "expired",
    next: async (milliseconds: number) => {
      waits.push(milliseconds);
      await sleep(Math.min(milliseconds, 10));
      return waits.length < most ? ("idle" as const) : null;
    },
    close: () => {},
  };
}

async function readAll(stream: AsyncIterable<{ data: Buffer }>): Promise<string[]> {
  const texts: string[] = [];
  for await (const { data } of stream) texts.push(data.toString());
  return texts;
}

const asOf = (caller: Caller) => ({ caller, isValid: async () => true });

test("a stream without events sends a comment at once, and then waits until its credentials are to be checked", async () => {
  const waits: number[] = [];
  const texts = await readAll(sendEvents(idleSource(waits, 2), asOf(callerUntil(null))));
  expect([texts, waits[0]]).toEqual([[":\n\n"], 0]);
  expect(waits[1]).toBeGreaterThan(4_000);
});

test("a stream that has an event at once sends no comment before it", async () => {
  const events = ["data: 1\n\n", "idle", "data: 2\n\n", null] as const;
  let count = 0;
  const source = { expired: "expired", next: async () => events[count++]!, close: () => {} };
  expect(await readAll(sendEvents(source, asOf(callerUntil(null))))).toEqual(["data: 1\n\n", "data: 2\n\n"]);
});

test("a stream ends when its token expires", async () => {
  const now = Math.floor(Date.now() / 1000);
  const waits: number[] = [];
  // Clocks may differ by 30 seconds.
  const caller = callerUntil(now - 30);
  const texts = await readAll(sendEvents(idleSource(waits, 1_000), { caller, isValid: async () => true }));
  expect(texts.filter((text) => !text.startsWith(":"))).toEqual(["expired"]);
  expect(Math.max(...waits)).toBeLessThanOrEqual(1_000);
});
