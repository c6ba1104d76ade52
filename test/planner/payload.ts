import type { RowPayload } from "../../planner/intent/intent.ts";
import { parseRows } from "../../rest-gateway/table/parse/body.ts";
import { contentOf } from "../rest-gateway/table/parse/content.ts";

/** Parses JSON in the form of clients: where its rows are alike, it has the places of their values. */
export function payloadOf(json: string): RowPayload {
  return parseRows(contentOf(json), null);
}
