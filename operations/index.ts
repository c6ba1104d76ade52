export {
  type ExplainableRequest,
  explainRead,
  explainRefusal,
  parseReadAddress,
  type ReadExplanation,
  readPoliciesOf,
} from "./explain-read.ts";
export { explainWrite, type RequestedWrite, WRITE_COMMANDS, type WriteExplanation } from "./explain-write.ts";
