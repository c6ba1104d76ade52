import { XMLParser, XMLValidator } from "fast-xml-parser";
import { readPayload } from "./payload.ts";
import { s3Error } from "./s3-error.ts";
import type { S3Request } from "./s3-request.ts";
import { isXmlText } from "./xml-characters.ts";
import { decodeReferences } from "./xml-references.ts";

const parser = new XMLParser({
  ...{ ignoreAttributes: true, parseTagValue: false, trimValues: false },
  entityDecoder: {
    decode: decodeReferences,
    // A document type could define entities.
    addInputEntities: refuseDocumentType,
    setExternalEntities() {},
    setXmlVersion() {},
    reset() {},
  },
});

/** The limit of a body, which fits 10,000 parts, or 1,000 names of 1,024 bytes. */
const MAX_BYTES = 4 * 1024 * 1024;

type ParsedElement = Readonly<Record<string, unknown>>;

/** Reads the body, and returns its root element. */
export async function readXml(request: S3Request, root: string): Promise<ParsedElement> {
  const element = parseXml(await readPayload(request, MAX_BYTES))[root];
  if (typeof element !== "object" || element === null) throw s3Error("MalformedXML");
  return element as ParsedElement;
}

function parseXml(bytes: Buffer): ParsedElement {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    if (isXmlText(text) && XMLValidator.validate(text) === true) return parser.parse(text) as ParsedElement;
  } catch (error) {
    throw s3Error("MalformedXML", undefined, { cause: error });
  }
  throw s3Error("MalformedXML");
}

function refuseDocumentType(): never {
  throw s3Error("MalformedXML");
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
