// A thread of its own, whose heap is small: its promises are counted.
import { queryObjects } from "node:v8";
import { parentPort } from "node:worker_threads";
import { openSubscriber } from "./subscriber.ts";

export type PromiseCounts = { readonly ofWaits: number; readonly ofKept: number };

const countPromises = () => queryObjects(Promise, { format: "count" });

// A wait keeps no thread alive.
const alive = setInterval(() => {}, 1_000);
const subscriber = openSubscriber();
await subscriber.next(1);
const before = countPromises();
for (let wait = 0; wait < 100; wait++) await subscriber.next(1);
const afterWaits = countPromises();
const kept = Array.from({ length: 100 }, () => Promise.withResolvers<void>());
const ofKept = countPromises() - afterWaits;
for (const { resolve } of kept) resolve();
clearInterval(alive);
parentPort!.postMessage({ ofWaits: afterWaits - before, ofKept } satisfies PromiseCounts);
