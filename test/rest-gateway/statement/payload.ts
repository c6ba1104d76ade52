import type { Payload } from "../../../rest-gateway/statement/intent.ts";
import { parseRows } from "../../../rest-gateway/table/parse/payload.ts";
import { contentOf } from "../table/parse/content.ts";

/** Of JSON as a client sends it: where its rows are alike, with the places of their values. */
export function payloadOf(json: string): Payload {
  return parseRows(contentOf(json), null);
}
