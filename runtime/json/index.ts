export { JsonMember, JsonRecord, NO_RECORD_LIMITS, readJsonRecords, Uint32List } from "./json-records.ts";
export {
  type ExactNumber,
  escapePointer,
  findUnstorable,
  findUnstorableInJson,
  isExactJsonObject,
  isExactNumber,
  isJsonObject,
  type JsonObject,
  parseJsonExactly,
  parseJsonNumber,
  readJsonMembers,
  toAddressText,
  toJavaScriptNumber,
} from "./json-values.ts";
export { normalizeJson } from "./normalize-json.ts";
export { OPEN_BRACE, OPEN_BRACKET, type RecordVisitor, scanJson, skipSpace } from "./scan-json.ts";
