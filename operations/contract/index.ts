export { addAffectedRequests } from "./affected-requests.ts";
export { checkRequests } from "./check-requests.ts";
export { toClientTypes } from "./client-types.ts";
export { compareContracts, printChanges } from "./compare-contracts.ts";
export {
  CHANGE_LEVELS,
  CONTRACT_FORMAT,
  type CompareInterfaces,
  type Contract,
  type ContractChange,
  type InterfaceComparison,
} from "./contract.ts";
export { readContract } from "./read-contract.ts";
export { type RecordedRequest, readRecordedRequests, toRequestRates } from "./recorded-requests.ts";
