import { describe, expect, test } from "vitest";
import { checkMessage, rootAttribute } from "../../../accounts/federation/saml-message.ts";

const SHA256 = "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256";
const signature = (method = SHA256, digest = "http://www.w3.org/2001/04/xmlenc#sha256") =>
  `<ds:Signature><ds:SignatureMethod Algorithm="${method}"/><ds:DigestMethod Algorithm='${digest}' /></ds:Signature>`;
const response = (inside: string) => `<p:Response ID="r">${inside}</p:Response>`;
const ASSERTION = `<a:Assertion>${signature()}</a:Assertion>`;

describe("a SAML response", () => {
  test.each([
    response(ASSERTION),
    `<?xml version="1.0" encoding="UTF-8"?>\n${response(ASSERTION)}`,
    response(signature() + ASSERTION),
    response(ASSERTION.replace("</a:", `${'<Value xsi:type="string">group</Value>'.repeat(900)}</a:`)),
    `<Response><Assertion\n>${signature()}</Assertion></Response>`,
  ])("may look like %s", (xml) => expect(() => checkMessage(xml, "Response")).not.toThrow());

  const causes: readonly (readonly [xml: string, because: string])[] = [
    ["", "not a Response"],
    ["<LogoutResponse/>", "not a Response"],
    [response(""), "assertions"],
    [response(ASSERTION + ASSERTION), "assertions"],
    [response(`${ASSERTION}<x:y><Assertion\t/></x:y>`), "assertions"],
    [response(`${ASSERTION}<ünï:Assertion>`), "assertions"],
    [`<Response ID="<${ASSERTION}`, "does not end"],
    [`${response(ASSERTION)}<x`, "does not end"],
    [`<Response ${"<".repeat(60 * 1024)}`, "does not end"],
    [response(ASSERTION + "<a/>".repeat(1_000)), "too many elements"],
    [
      `<Response ${Array.from({ length: 2_000 }, (_, n) => `a${n}="1"`).join(" ")}>${ASSERTION}</Response>`,
      "attributes",
    ],
    [response(ASSERTION.replaceAll("Assertion", "EncryptedAssertion")), "assertions"],
    [response(`${ASSERTION}<EncryptedAssertion/>`), "encrypted"],
    [response(response(ASSERTION)), "more than one Response"],
    [`<x><Response/>${ASSERTION}</x>`, "not a Response"],
    [`<!DOCTYPE a>${response(ASSERTION)}`, "document type"],
    [response(`<!-- -->${ASSERTION}`), "comment"],
    [response(`<![CDATA[x]]>${ASSERTION}`), "CDATA"],
    [response(`<?x?>${ASSERTION}`), "processing instruction"],
    [`<?xml version="1.0"?><?xml version="1.0"?>${response(ASSERTION)}`, "processing instruction"],
    [response(signature() + signature() + ASSERTION), "signatures"],
    [response(`<Assertion>${signature("http://www.w3.org/2000/09/xmldsig#rsa-sha1")}</Assertion>`), "weak"],
    [response(`<Assertion>${signature(SHA256, "http://www.w3.org/2000/09/xmldsig#sha1")}</Assertion>`), "weak"],
    [response(`<Assertion>${signature("http://www.w3.org/2000/09/xmldsig#hmac-sha1")}</Assertion>`), "weak"],
    [response(`<Assertion>${signature("http://www.w3.org/2001/04/xmldsig-more#hmac-sha256")}</Assertion>`), "weak"],
    [response(`<Assertion>${signature("&#104;ttp://x#rsa-sha256")}</Assertion>`), "weak"],
    [response(ASSERTION + " ".repeat(64 * 1024)), "too long"],
  ];
  test.each(causes)("%s is refused", (xml, because) => {
    const refuse = () => checkMessage(xml, "Response");
    expect(refuse).toThrow(expect.objectContaining({ kind: "unauthenticated", code: "INVALID_ASSERTION" }));
    expect(refuse).toThrow(
      expect.objectContaining({ cause: expect.objectContaining({ message: expect.stringContaining(because) }) }),
    );
  });
});

test("a LogoutRequest must not contain an assertion", () => {
  expect(() => checkMessage("<LogoutRequest/>", "LogoutRequest")).not.toThrow();
  expect(() => checkMessage(`<LogoutRequest>${ASSERTION}</LogoutRequest>`, "LogoutRequest")).toThrow();
});

test.each([
  ['<a:b Destination="one" Other="two">', "one"],
  ["<?xml version='1.0'?><b\nDestination = 'one'/>", "one"],
  ['<b MyDestination="one"><c Destination="two"/></b>', null],
])("of %s the outermost element's attribute is %j", (xml, value) => {
  expect(rootAttribute(xml, "Destination")).toBe(value);
});
