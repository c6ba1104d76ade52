export { toClientTypes } from "./client-types.ts";
export { compareContracts, printChanges } from "./compare-contracts.ts";
export {
  CHANGE_LEVELS,
  CONTRACT_FORMAT,
  type CompareInterfaces,
  type Contract,
  type InterfaceComparison,
} from "./contract.ts";
export { readContract } from "./read-contract.ts";
