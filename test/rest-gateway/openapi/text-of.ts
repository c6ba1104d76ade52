import { gunzipSync } from "node:zlib";
import type { PrintedDocument } from "../../../rest-gateway/openapi/document/printed-document.ts";

export async function textOf(document: PrintedDocument | Promise<PrintedDocument>): Promise<string> {
  return gunzipSync((await document).gzip).toString();
}
