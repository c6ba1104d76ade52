import { XMLParser, XMLValidator } from "fast-xml-parser";
import { readPayload } from "./payload.ts";
import { s3Error } from "./s3-error.ts";
import type { S3Request } from "./s3-request.ts";

const parser = new XMLParser({ ignoreAttributes: true, parseTagValue: false, trimValues: false });

/** The limit of a body, which fits 10,000 parts, or 1,000 names of 1,024 bytes. */
const MAX_BYTES = 4 * 1024 * 1024;

type ParsedElement = Readonly<Record<string, unknown>>;

/** Reads the body, and returns its root element. */
export async function readXml(request: S3Request, root: string): Promise<ParsedElement> {
  const text = (await readPayload(request, MAX_BYTES)).toString("utf8");
  // A document type could define entities.
  if (/<!/.test(text) || XMLValidator.validate(text) !== true) throw s3Error("MalformedXML");
  const element = (parser.parse(text) as ParsedElement)[root];
  if (typeof element !== "object" || element === null) throw s3Error("MalformedXML");
  return element as ParsedElement;
}

export function elementsOf(parent: ParsedElement, name: string): readonly ParsedElement[] {
  const found = parent[name] ?? [];
  const all: readonly unknown[] = Array.isArray(found) ? found : [found];
  if (all.some((each) => typeof each !== "object" || each === null)) throw s3Error("MalformedXML");
  return all as readonly ParsedElement[];
}

export function textOf(parent: ParsedElement, name: string): string {
  const text = parent[name];
  if (typeof text !== "string") throw s3Error("MalformedXML");
  return text;
}
