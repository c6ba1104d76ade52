import { XMLBuilder } from "fast-xml-parser";
import type { GatewayResponse } from "#http";
import { toXmlText } from "./xml-characters.ts";

const DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n';
const NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/";

const builder = new XMLBuilder({ ignoreAttributes: false, attributeNamePrefix: "@", suppressEmptyNode: true });

/** Prints XML. Lists are repeated elements; undefined members are omitted. */
export function writeXml(root: string, content: object, { hasNamespace = true } = {}): string {
  const attributes = hasNamespace ? { "@xmlns": NAMESPACE } : {};
  const document = DECLARATION + builder.build({ [root]: { ...attributes, ...content } });
  // A reader of XML takes a carriage return for a line break.
  return toXmlText(document).replaceAll("\r", "&#xD;");
}

export function xmlResponse(root: string, content: object): GatewayResponse {
  return { status: 200, headers: { "Content-Type": "application/xml" }, body: writeXml(root, content) };
}
