import { runAtOnce } from "../../../../engine/stepwise.ts";
import { type Content, readContent } from "../../../../rest-gateway/table/parse/content.ts";
import { parseContentType } from "../../../../rest-gateway/table/parse/media-type.ts";

/** A body as the table interface reads it. */
export function contentOf(body: string | Buffer, type?: string): Content {
  return runAtOnce(readContent(Buffer.from(body), parseContentType(type)));
}
