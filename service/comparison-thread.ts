import { on } from "node:events";
import { parentPort, workerData } from "node:worker_threads";
import { type Contract, compareContracts, type InterfaceComparison, printChanges } from "#operations/contract";
import { readContractOf } from "./database-contract.ts";
import type { ComparisonSource } from "./interface-comparison.ts";

// The program of a thread: reads the interfaces of the database of each URL, and compares them with those that it has read before.

const { config, requestUrl } = workerData as ComparisonSource;
let before: Contract | null = null;
for await (const [url] of on(parentPort!, "message")) {
  const contract = await readContractOf(url, requestUrl, config);
  parentPort!.postMessage(before && compare(before, contract));
  before = contract;
}

function compare(earlier: Contract, later: Contract): InterfaceComparison {
  const changes = compareContracts(earlier, later);
  return { changes, markdown: printChanges(changes) };
}
