import type { ApiError } from "../../errors.ts";
import { statementRefused } from "./refusals.ts";

/** As much as a form may bring. */
export const MOST_BYTES = 64 * 1024;
/** Ample for somebody in hundreds of groups. The library's time grows with the square: 12,000 elements take it 17 seconds. */
const MOST_ELEMENTS: Readonly<Record<SamlMessage, number>> = {
  Response: 1_000,
  LogoutRequest: 100,
  LogoutResponse: 100,
};
const ATTRIBUTES_EACH = 2;
const STRONG = /Algorithm\s*=\s*["'][^"'&]*#(rsa-)?sha(256|384|512)["']/;

const SUCCESS = "urn:oasis:names:tc:SAML:2.0:status:Success";

export type SamlMessage = "Response" | "LogoutRequest" | "LogoutResponse";

/**
 * Looks at the text before any parser does, so that no two parsers can read it differently: there is one message with at
 * most one assertion in it, nothing that a parser could leave out or put in, and no digest that can be forged.
 */
export function checkMessage(xml: string, kind: SamlMessage): void {
  const body = xml.replace(/^\uFEFF?\s*<\?xml[^<>]*\?>/, "");
  const count = (name: string) => tagsOf(body, name).length;
  const most = MOST_ELEMENTS[kind];
  const assertions = kind === "Response" ? 1 : 0;
  const faults: readonly (readonly [isFault: boolean, what: string])[] = [
    [Buffer.byteLength(xml) > MOST_BYTES, "it is too long"],
    [/<[^<>]*(<|$)/.test(body), "it has a tag that does not end"],
    [timesOf(/<[^/]/g, body) > most, "it has too many elements"],
    [timesOf(/=\s*["']/g, body) > most * ATTRIBUTES_EACH, "it has too many attributes"],
    [/<[!?]/.test(body), "it has a document type, a comment, a CDATA section or a processing instruction"],
    [/^\s*<([^\s<>/:]+:)?(\w+)/.exec(body)?.[2] !== kind, `it is no ${kind}`],
    [count(kind) !== 1, `it has several elements ${kind}`],
    [count("Assertion") !== assertions, "it has another number of assertions than it should"],
    [count("EncryptedAssertion") > 0, "its assertion is encrypted"],
    [count("Signature") > 2, "it has too many signatures"],
    [
      [...tagsOf(body, "SignatureMethod"), ...tagsOf(body, "DigestMethod")].some((tag) => !STRONG.test(tag)),
      "its digest is weak",
    ],
  ];
  const fault = faults.find(([isFault]) => isFault);
  if (fault) throw messageRefused(fault[1]);
}

/** A response for somebody else, or one that does not say yes, is refused although the assertion in it is good. */
export function checkResponse(xml: string, ourAddress: string): void {
  checkMessage(xml, "Response");
  checkDestination(xml, ourAddress);
  const [status, ...others] = tagsOf(xml, "StatusCode").map((tag) => attributeOf(tag, "Value"));
  if (status !== SUCCESS || others.includes(SUCCESS)) throw messageRefused("its status is not one of success");
}

/** A message that names no address is for anybody. */
export function checkDestination(xml: string, ourAddress: string): void {
  const destination = rootAttribute(xml, "Destination");
  if (destination !== null && destination !== ourAddress) throw messageRefused("it is for another address");
}

/** Whether a response is signed besides its assertion: an assertion has one signature. */
export function hasOwnSignature(xml: string): boolean {
  return tagsOf(xml, "Signature").length > 1;
}

export function messageRefused(what: string): ApiError {
  return statementRefused(new Error(`The SAML message is refused: ${what}`));
}

export function decodeMessage(base64: string): string {
  return Buffer.from(base64, "base64").toString("utf8");
}

/** An attribute of the outermost element. */
export function rootAttribute(xml: string, name: string): string | null {
  return attributeOf(/<[^!?][^>]*>/.exec(xml)?.[0] ?? "", name);
}

function attributeOf(tag: string, name: string): string | null {
  return (
    new RegExp(`\\s${name}\\s*=\\s*(?:"([^"]*)"|'([^']*)')`)
      .exec(tag)
      ?.slice(1)
      .find((value) => value !== undefined) ?? null
  );
}

function timesOf(pattern: RegExp, text: string): number {
  return text.match(pattern)?.length ?? 0;
}

/** In text, `<` begins a tag and nothing else once sections and comments are refused. */
function tagsOf(xml: string, name: string): string[] {
  return xml.match(new RegExp(`<(?:[^\\s<>/:]+:)?${name}(?=[\\s/>])[^>]*`, "g")) ?? [];
}
