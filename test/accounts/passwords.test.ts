import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { makePasswords } from "../../accounts/passwords.ts";
import { argon2Runs } from "./argon2-runs.ts";

describe("password comparisons", () => {
  test("for unknown users too, with the result false", async () => {
    const passwords = makePasswords();
    const hash = await passwords.hash("secret");
    expect(await passwords.matches(hash, "secret")).toBe(true);
    const foreign = "$1$O3JMY.Tw$AdLnLjQ/5jXF9.MTp3gHv/";
    for (const phc of [null, foreign]) expect(await passwords.matches(phc, "secret")).toBe(false);
    for (const phc of [hash, null, foreign]) expect(await argon2Runs(() => passwords.matches(phc, "secret"))).toBe(1);
  });

  test("off the event loop", async () => {
    const passwords = makePasswords();
    let isDone = false;
    let turns = 0;
    const all = Promise.all(Array.from({ length: 4 }, () => passwords.hash("secret"))).then(() => {
      isDone = true;
    });
    while (!isDone) {
      await sleep(1);
      turns++;
    }
    await all;
    expect(turns).toBeGreaterThan(10);
  });

  test("run a few at a time; others wait, and are refused if the queue is full", async () => {
    const passwords = makePasswords({ concurrency: 1, maxWaiting: 4 });
    const order: number[] = [];
    const request = [0, 1, 2, 3].map((n) =>
      passwords.hash("secret", { address: `192.0.${n}.1` }).then(() => order.push(n)),
    );
    await expect(request[3]).rejects.toMatchObject({ kind: "unavailable", retryAfterSeconds: 1 });
    await Promise.all(request.slice(0, 3));
    expect(order).toEqual([0, 1, 2]);
    await expect(passwords.hash("secret")).resolves.toBeTruthy();
  });

  test("a failed comparison does not block the next", async () => {
    const passwords = makePasswords({ concurrency: 1, maxWaiting: 2 });
    const broken = passwords.hashLike("rubbish", "secret");
    const next = passwords.hash("secret");
    await expect(broken).rejects.toThrow();
    await expect(next).resolves.toBeTruthy();
  });

  test.each([
    ["IPv6 site", (n: number) => `2001:db8:1:${n}::1`, "2001:db8:2::1"],
    ["IPv4 range", (n: number) => `192.0.2.${n}`, "198.51.100.1"],
  ])("of one %s fill the queue of strangers, and still make way for others", async (_what, addressOf, elsewhere) => {
    const passwords = makePasswords({ concurrency: 1, maxWaiting: 6 });
    const flood = Array.from({ length: 6 }, (_, n) => passwords.hash("secret", { address: addressOf(n) }));
    const other = passwords.hash("secret", { address: elsewhere });
    const settled = await Promise.allSettled(flood);
    expect(settled.map(({ status }) => status)).toEqual([
      "fulfilled",
      "fulfilled",
      "fulfilled",
      "rejected",
      "rejected",
      "rejected",
    ]);
    await expect(flood[3]).rejects.toMatchObject({ kind: "unavailable", retryAfterSeconds: 1 });
    await expect(flood[4]).rejects.toMatchObject({ kind: "rateLimited", retryAfterSeconds: 2 });
    await expect(other).resolves.toBeTruthy();
  });

  test("of known requesters do not wait behind strangers, and find room when strangers find none", async () => {
    const passwords = makePasswords({ concurrency: 1, maxWaiting: 4 });
    const order: string[] = [];
    const hash = (name: string, address: string, isKnown: boolean) =>
      passwords.hash("secret", { address, isKnown }).then(() => order.push(name));
    const strangers = [1, 2, 3, 4].map((n) => hash(`stranger ${n}`, `192.0.${n}.1`, false));
    const known = [1, 2].map((n) => hash(`known ${n}`, `198.51.${n}.1`, true));
    await expect(strangers[3]).rejects.toMatchObject({ kind: "unavailable" });
    await Promise.all([...strangers.slice(0, 3), ...known]);
    expect(order).toEqual(["stranger 1", "known 1", "known 2", "stranger 2", "stranger 3"]);
  });
});
