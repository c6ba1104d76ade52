export { toClientTypes } from "./client-types.ts";
export { compareContracts } from "./compare-contracts.ts";
export { CHANGE_LEVELS, CONTRACT_FORMAT, type Contract } from "./contract.ts";
export { printChanges } from "./print-changes.ts";
export { readContract } from "./read-contract.ts";
