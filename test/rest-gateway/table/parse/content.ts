import { type ParsedBody, parseBody } from "../../../../rest-gateway/table/parse/body.ts";
import { parseContentType } from "../../../../rest-gateway/table/parse/headers.ts";
import { runToCompletion } from "../../../../runtime/concurrency/stepwise.ts";

/** A body as the table interface reads it. */
export function contentOf(body: string | Buffer, type?: string): ParsedBody {
  return runToCompletion(parseBody(Buffer.from(body), parseContentType(type)));
}
