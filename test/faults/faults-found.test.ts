import { expect, test } from "vitest";
import { faultsFound, type Seen } from "./faults-found.ts";

const well: Seen = {
  acknowledged: [1, 2],
  refused: [3],
  unread: [],
  stored: new Map([
    [1, 1],
    [2, 1],
    [4, 1],
  ]),
  received: new Map([
    [1, 1],
    [2, 1],
    [4, 1],
  ]),
};

test("rows that exist once and were received once are correct, whether or not they were acknowledged", () => {
  expect(faultsFound(well)).toEqual({});
});

test.each<[string, Partial<Seen>, number]>([
  ["acknowledged and lost", { acknowledged: [1, 2, 5] }, 5],
  ["refused and written", { refused: [4] }, 4],
  ["written twice", { stored: new Map([...well.stored, [4, 2]]) }, 4],
  ["not read by who wrote it", { unread: [2] }, 2],
  ["written and not received", { stored: new Map([...well.stored, [6, 1]]) }, 6],
  ["received and not written", { received: new Map([...well.received, [7, 1]]) }, 7],
  ["received more often than written", { received: new Map([...well.received, [2, 2]]) }, 2],
])("a row that is %s is detected", (fault, change, number) => {
  expect(faultsFound({ ...well, ...change })).toEqual({ [fault]: [number] });
});
