export { namesClock } from "../dependencies/clock-values.ts";
export type { ColumnBounds } from "./affected-rows.ts";
export { type MatchedResult, RelationResults } from "./relation-results.ts";
