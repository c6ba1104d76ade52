import type { Payload } from "../../../rest-gateway/statement/intent.ts";
import { parseContentType } from "../../../rest-gateway/table/parse/media-type.ts";
import { parseRows } from "../../../rest-gateway/table/parse/payload.ts";

/** Of JSON as a client sends it: where its rows are alike, with the places of their values. */
export function payloadOf(json: string): Payload {
  return parseRows({ body: Buffer.from(json), format: parseContentType(undefined) }, null);
}
