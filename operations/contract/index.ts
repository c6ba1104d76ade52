export { toClientTypes } from "./client-types.ts";
export { compareContracts, printChanges } from "./compare-contracts.ts";
export { CHANGE_LEVELS, CONTRACT_FORMAT, type Contract } from "./contract.ts";
export { readContract } from "./read-contract.ts";
