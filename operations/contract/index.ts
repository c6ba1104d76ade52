export { compareWithRequests } from "./affected-requests.ts";
export { checkRequests } from "./check-requests.ts";
export { toClientTypes } from "./client-types.ts";
export { printChanges } from "./compare-contracts.ts";
export {
  CHANGE_LEVELS,
  CONTRACT_FORMAT,
  type CompareInterfaces,
  type Contract,
  type ContractChange,
  type InterfaceComparison,
} from "./contract.ts";
export { readContract } from "./read-contract.ts";
export { type RecordedRequest, readRecordedRequests, readRequestRates } from "./recorded-requests.ts";
