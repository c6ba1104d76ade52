/** A character that no XML 1.0 document has, not even as a reference. */
const NOT_XML = /[^\t\n\r\x20-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/u;
const EACH_NOT_XML = new RegExp(NOT_XML, "gu");

export function isXmlText(text: string): boolean {
  return !NOT_XML.test(text);
}

/** Replaces the characters that would make the document unreadable; `encoding-type=url` shows them as they are. */
export function toXmlText(text: string): string {
  return text.replace(EACH_NOT_XML, "\uFFFD");
}
