import fc from "fast-check";
import { type Area, type Case, group } from "../case.ts";
import { calling } from "./generated/calls.ts";
import { mutilated, reading } from "./generated/reads.ts";
import { deleting, inserting, updating, upserting } from "./generated/writes.ts";

/** The same requests in every run. */
const SEED = 20_261_120;

function sample(arbitrary: fc.Arbitrary<Case>, runs: number): Case[] {
  const cases = fc.sample(arbitrary, { seed: SEED, numRuns: runs }).map((request) => ({ ...request, outcome: "any" }));
  return [...new Map(cases.map((request) => [JSON.stringify(request), request])).values()];
}

export const generated: Area = {
  name: "generated",
  groups: [
    group("reads", sample(reading, 500)),
    group("mutilated reads", sample(mutilated, 300)),
    group("inserts", sample(inserting, 120)),
    group("upserts", sample(upserting, 100)),
    group("updates", sample(updating, 100)),
    group("deletes", sample(deleting, 60)),
    group("calls", sample(calling, 150)),
  ],
};
