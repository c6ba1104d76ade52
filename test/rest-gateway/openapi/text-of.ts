import { gunzipSync } from "node:zlib";
import type { WrittenDocument } from "../../../rest-gateway/openapi/written-document.ts";

export async function textOf(document: WrittenDocument | Promise<WrittenDocument>): Promise<string> {
  return gunzipSync((await document).gzip).toString();
}
