import type { RowPayload } from "../../planner/intent/intent.ts";
import { parseRows } from "../../rest-gateway/table/parse/body.ts";
import { contentOf } from "../rest-gateway/table/parse/content.ts";

/** Of JSON as a client sends it: where its rows are alike, with the places of their values. */
export function payloadOf(json: string): RowPayload {
  return parseRows(contentOf(json), null);
}
