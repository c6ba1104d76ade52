import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { callerFromClaims } from "../../accounts/identity/caller.ts";
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

test("a stream without events waits until its credentials are to be checked", async () => {
  const waits: number[] = [];
  await readAll(sendEvents(idleSource(waits, 2), { caller: callerUntil(null), isValid: async () => true }));
  expect(waits[0]).toBeGreaterThan(4_000);
});

test("a stream ends when its token expires", async () => {
  const now = Math.floor(Date.now() / 1000);
  const waits: number[] = [];
  // Clocks may differ by 30 seconds.
  const caller = callerUntil(now - 30);
  const texts = await readAll(sendEvents(idleSource(waits, 1_000), { caller, isValid: async () => true }));
  expect(texts).toEqual(["expired"]);
  expect(Math.max(...waits)).toBeLessThanOrEqual(1_000);
});
