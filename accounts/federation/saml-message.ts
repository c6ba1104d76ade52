import type { ApiError } from "#runtime";
import { assertionInvalid } from "./federation-errors.ts";

/** The size limit of a form body. */
export const MAX_MESSAGE_BYTES = 64 * 1024;
/** The limit allows a user in hundreds of groups. The library takes quadratic time: 17 seconds for 12,000 elements. */
const MAX_ELEMENTS: Readonly<Record<SamlMessage, number>> = {
  Response: 1_000,
  LogoutRequest: 100,
  LogoutResponse: 100,
};
const ATTRIBUTES_PER_ELEMENT = 2;
const STRONG_DIGEST = /Algorithm\s*=\s*["'][^"'&]*#(rsa-)?sha(256|384|512)["']/;

const SUCCESS = "urn:oasis:names:tc:SAML:2.0:status:Success";

type SamlMessage = "Response" | "LogoutRequest" | "LogoutResponse";

/**
 * Checks the XML text before it is parsed, so that two parsers cannot interpret it differently: it has one message with at
 * most one assertion, no comments, entities or other constructs that parsers handle differently, and no weak digest.
 */
export function checkMessage(xml: string, kind: SamlMessage): void {
  const body = xml.replace(/^\uFEFF?\s*<\?xml[^<>]*\?>/, "");
  const count = (name: string) => tagsOf(body, name).length;
  const maxElements = MAX_ELEMENTS[kind];
  const assertions = kind === "Response" ? 1 : 0;
  const faults: readonly (readonly [isFault: boolean, description: string])[] = [
    [Buffer.byteLength(xml) > MAX_MESSAGE_BYTES, "it is too long"],
    [/<[^<>]*(<|$)/.test(body), "it has a tag that does not end"],
    [countMatches(/<[^/]/g, body) > maxElements, "it has too many elements"],
    [countMatches(/=\s*["']/g, body) > maxElements * ATTRIBUTES_PER_ELEMENT, "it has too many attributes"],
    [/<[!?]/.test(body), "it has a document type, a comment, a CDATA section or a processing instruction"],
    [/^\s*<([^\s<>/:]+:)?(\w+)/.exec(body)?.[2] !== kind, `it is not a ${kind}`],
    [count(kind) !== 1, `it has more than one ${kind}`],
    [count("Assertion") !== assertions, "it has another number of assertions than it should"],
    [count("EncryptedAssertion") > 0, "its assertion is encrypted"],
    [count("Signature") > 2, "it has too many signatures"],
    [
      [...tagsOf(body, "SignatureMethod"), ...tagsOf(body, "DigestMethod")].some((tag) => !STRONG_DIGEST.test(tag)),
      "its digest is weak",
    ],
  ];
  const fault = faults.find(([isFault]) => isFault);
  if (fault) throw invalidMessage(fault[1]);
}

/** Also refuses a response with a valid assertion if it has another destination or no success status. */
export function checkResponse(xml: string, ownUrl: string): void {
  checkMessage(xml, "Response");
  checkDestination(xml, ownUrl);
  const [status, ...others] = tagsOf(xml, "StatusCode").map((tag) => attributeOf(tag, "Value"));
  if (status !== SUCCESS || others.includes(SUCCESS)) throw invalidMessage("its status is not Success");
}

/** The Destination attribute is optional. */
export function checkDestination(xml: string, ownUrl: string): void {
  const destination = rootAttribute(xml, "Destination");
  if (destination !== null && destination !== ownUrl) throw invalidMessage("it has another destination");
}

/** True if the response itself is signed, in addition to its assertion. */
export function hasOwnSignature(xml: string): boolean {
  return tagsOf(xml, "Signature").length > 1;
}

export function invalidMessage(description: string): ApiError {
  return assertionInvalid(new Error(`The SAML message is refused: ${description}`));
}

export function decodeMessage(base64: string): string {
  return Buffer.from(base64, "base64").toString("utf8");
}

/** Reads an attribute of the root element. */
export function rootAttribute(xml: string, name: string): string | null {
  return attributeOf(/<[^!?<>][^<>]*>/.exec(xml)?.[0] ?? "", name);
}

function attributeOf(tag: string, name: string): string | null {
  return (
    new RegExp(`\\s${name}\\s*=\\s*(?:"([^"]*)"|'([^']*)')`)
      .exec(tag)
      ?.slice(1)
      .find((value) => value !== undefined) ?? null
  );
}

function countMatches(pattern: RegExp, text: string): number {
  return text.match(pattern)?.length ?? 0;
}

/** The result is reliable only after checkMessage has refused comments and CDATA sections. */
function tagsOf(xml: string, name: string): string[] {
  return xml.match(new RegExp(`<(?:[^\\s<>/:]+:)?${name}(?=[\\s/>])[^>]*`, "g")) ?? [];
}
