import { s3Error } from "./s3-error.ts";
import { isXmlText } from "./xml-characters.ts";

const NAMED = new Map(Object.entries({ amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" }));
const REFERENCE = /&(?:#0*(\d{1,7});|#x0*([\da-fA-F]{1,6});|(\w+);)?/g;
const MAX_CODE_POINT = 0x10ffff;

/** Decodes the references of a text: the five names that XML has, and numbers of characters. */
export function decodeReferences(text: string): string {
  return text.replace(REFERENCE, (_, decimal?: string, hexadecimal?: string, name?: string) => {
    const character = name === undefined ? characterOf(decimal, hexadecimal) : NAMED.get(name);
    if (character === undefined) throw s3Error("MalformedXML");
    return character;
  });
}

function characterOf(decimal?: string, hexadecimal?: string): string | undefined {
  const code = decimal === undefined ? Number.parseInt(hexadecimal ?? "", 16) : Number(decimal);
  const character = code <= MAX_CODE_POINT ? String.fromCodePoint(code) : undefined;
  return character !== undefined && isXmlText(character) ? character : undefined;
}
