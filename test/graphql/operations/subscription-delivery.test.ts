import { describe, expect, test } from "vitest";
import { EventQueue } from "../../../graphql/operations/subscription-delivery.ts";
import type { RowEvent } from "../../../plugins/row-events.ts";

const event = (number: number): RowEvent => ({ s: "public", t: "things", op: "insert", k: { id: String(number) } });

function open() {
  const joined: string[] = [];
  let left = 0;
  const inbox = new EventQueue(
    (topic) => joined.push(topic),
    () => left++,
  );
  return { inbox, events: inbox.subscribe("things"), joined, left: () => left };
}

describe("an event queue", () => {
  test("returns pushed events in order, now or later", async () => {
    const { inbox, events, joined } = open();
    expect(joined).toEqual(["things"]);
    inbox.push(event(1));
    inbox.push(event(2));
    expect((await events.next()).value).toEqual(event(1));
    expect((await events.next()).value).toEqual(event(2));
    const later = events.next();
    inbox.push(event(3));
    expect((await later).value).toEqual(event(3));
  });

  test("returns a limited number of events whose results are unread", async () => {
    const { inbox, events } = open();
    for (let number = 0; number < 20; number++) inbox.push(event(number));
    for (let number = 0; number < 16; number++) await events.next();
    let isGiven = false;
    const next = events.next().then((step) => {
      isGiven = true;
      return step.value;
    });
    await new Promise(setImmediate);
    expect(isGiven).toBe(false);
    inbox.confirmDelivery();
    expect(await next).toEqual(event(16));
  });

  test("drops all events when it is full, and reports the overflow until the end", async () => {
    const { inbox, events } = open();
    let result = 0;
    inbox.onLoss = () => result++;
    for (let number = 0; number <= 10_000; number++) inbox.push(event(number));
    expect(result).toBe(1);
    expect([inbox.takeLoss(), inbox.takeLoss()]).toEqual(["overflow", "overflow"]);
    inbox.push(event(1));
    inbox.reportLoss("gap");
    expect(inbox.takeLoss()).toBe("overflow");
    inbox.close();
    expect(await events.next()).toEqual({ done: true, value: undefined });
  });

  test("reports a gap once", () => {
    const { inbox } = open();
    expect(inbox.takeLoss()).toBeNull();
    inbox.reportLoss("gap");
    expect([inbox.takeLoss(), inbox.takeLoss()]).toEqual(["gap", null]);
  });

  test("that is closed, from either side, returns nothing more and unsubscribes once", async () => {
    for (const close of [
      (given: ReturnType<typeof open>) => given.inbox.close(),
      (given: ReturnType<typeof open>) => given.events.return!(),
    ]) {
      const given = open();
      const waiting = given.events.next();
      await close(given);
      given.inbox.close();
      given.inbox.push(event(1));
      expect(await waiting).toEqual({ done: true, value: undefined });
      expect(await given.events.next()).toEqual({ done: true, value: undefined });
      expect(given.left()).toBe(1);
    }
  });
});
