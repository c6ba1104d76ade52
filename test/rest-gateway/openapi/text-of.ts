import { gunzipSync } from "node:zlib";
import type { WrittenDocument } from "../../../rest-gateway/openapi/write.ts";

export async function textOf(document: WrittenDocument | Promise<WrittenDocument>): Promise<string> {
  return gunzipSync((await document).gzip).toString();
}
