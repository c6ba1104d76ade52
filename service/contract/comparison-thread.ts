import { on } from "node:events";
import { parentPort, workerData } from "node:worker_threads";
import { type Contract, compareWithRequests, type InterfaceComparison, printChanges } from "#operations/contract";
import { type CheckedContract, checkContractOf } from "./database-contract.ts";
import type { ComparisonSource, InterfaceReading } from "./interface-comparison.ts";

// The program of a thread: reads the interfaces of the database of each URL, and compares them with the interfaces that it read before.

const { config, requestUrl } = workerData as ComparisonSource;
let before: Contract | null = null;
for await (const [reading] of on(parentPort!, "message") as AsyncIterable<[InterfaceReading]>) {
  const checked = await checkContractOf(reading.url, requestUrl, config, reading.requests ?? []);
  parentPort!.postMessage(before && compare(before, checked, reading));
  before = checked.contract;
}

function compare(earlier: Contract, later: CheckedContract, { requests }: InterfaceReading): InterfaceComparison {
  const changes = compareWithRequests(earlier, later, requests);
  return { changes, markdown: printChanges(changes) };
}
