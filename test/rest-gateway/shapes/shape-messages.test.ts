import { expect, test } from "vitest";
import { snapshotEnd } from "../../../rest-gateway/shapes/shape-messages.ts";

const end = (xmin: string, xmax: string, ...running: string[]) => [
  { headers: { control: "snapshot-end", xmin, xmax, xip_list: running } },
];

test("a snapshot is sent as Electric does, with numbers without the epoch", () => {
  expect(snapshotEnd("3201:3208:3203,3205")).toEqual(end("3201", "3208", "3203", "3205"));
  expect(snapshotEnd("7:7:")).toEqual(end("7", "7"));
  expect(snapshotEnd(`${2n ** 32n + 5n}:${2n ** 32n + 9n}:${2n ** 32n + 6n}`)).toEqual(end("5", "9", "6"));
  // The numbers begin anew in between.
  expect(snapshotEnd(`${2n ** 32n - 2n}:${2n ** 32n + 9n}:`)).toEqual([]);
  expect(snapshotEnd(null)).toEqual([]);
});
