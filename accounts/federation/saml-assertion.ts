import { assertionInvalid } from "./federation-errors.ts";
import type { ExternalIdentity, Provider } from "./provider.ts";

/** An element in xml2js's format: text in `_`, attributes in `$`, children by name. */
export type XmlElement = { readonly _?: string; readonly $?: Readonly<Record<string, string>> } & {
  readonly [child: string]: unknown;
};

type AssertionChecks = { readonly provider: Provider; readonly recipient: string; readonly requestId: string };

const BEARER = "urn:oasis:names:tc:SAML:2.0:cm:bearer";
/** The accepted clock difference to the provider. */
export const CLOCK_SKEW_MS = 30_000;
/** Authentication contexts that mean multi-factor authentication. */
const SECOND_FACTORS: readonly string[] = [
  "https://refeds.org/profile/mfa",
  "http://schemas.microsoft.com/claims/multipleauthn",
  "urn:oasis:names:tc:SAML:2.0:ac:classes:MobileTwoFactorContract",
  "urn:oasis:names:tc:SAML:2.0:ac:classes:TimeSyncToken",
];

/**
 * Reads a signed assertion. The library has verified its signature, audience and times; this checks the issuer, the
 * recipient and the request it responds to.
 */
export function readAssertion(
  assertion: XmlElement,
  { provider, recipient, requestId }: AssertionChecks,
): ExternalIdentity {
  const { issuer, settings } = provider;
  if (textOf(onlyChild(assertion, "Issuer")) !== issuer) throw invalidAssertion("it has another issuer");
  const subject = onlyChild(assertion, "Subject");
  const nameId = textOf(onlyChild(subject, "NameID"));
  const confirmation = childrenOf(subject, "SubjectConfirmation")
    .filter(({ $ }) => $?.Method === BEARER)
    .flatMap((each) => childrenOf(each, "SubjectConfirmationData"))
    .find(({ $ }) => $?.Recipient === recipient && $.InResponseTo === requestId && isInFuture($.NotOnOrAfter));
  if (!confirmation) throw invalidAssertion("it has no valid subject confirmation for this service and this request");
  if (childrenOf(onlyChild(assertion, "Conditions"), "AudienceRestriction").length === 0)
    throw invalidAssertion("it is for any audience");
  const authentication = onlyChild(assertion, "AuthnStatement");
  const { SessionIndex: sessionIndex = null, SessionNotOnOrAfter: sessionEnd } = authentication.$ ?? {};
  if (sessionEnd !== undefined && !isInFuture(sessionEnd)) throw invalidAssertion("its session has ended");

  const attributes = attributesOf(assertion);
  const attribute = (name: string | undefined) => (name === undefined ? null : (attributes.get(name) ?? null));
  const { claims = {} } = settings;
  const subjectId = claims.subject === undefined ? nameId : attribute(claims.subject);
  if (!subjectId || !nameId) throw invalidAssertion("it has no subject");
  const email = attribute(claims.email) ?? firstOf(attributes, EMAILS) ?? (nameId.includes("@") ? nameId : null);
  return {
    subject: subjectId,
    email,
    isEmailVerified: attribute(claims.email_verified) === "true",
    name: attribute(claims.name) ?? firstOf(attributes, NAMES),
    hasSecondFactor: contextsOf(authentication).some((context) => SECOND_FACTORS.includes(context)),
    message: { id: assertion.$!.ID!, expiresAt: new Date(Date.parse(confirmation.$!.NotOnOrAfter!) + CLOCK_SKEW_MS) },
    signOut: { subject: nameId, sessionIndex, proof: JSON.stringify(onlyChild(subject, "NameID").$ ?? {}) },
  };
}

/** The attribute names of common providers. */
const EMAILS: readonly string[] = [
  "email",
  "mail",
  "urn:oid:0.9.2342.19200300.100.1.3",
  "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/emailaddress",
];
const NAMES: readonly string[] = [
  "displayName",
  "name",
  "cn",
  "urn:oid:2.16.840.1.113730.3.1.241",
  "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/name",
];

function childrenOf(element: XmlElement, name: string): readonly XmlElement[] {
  const children = Object.hasOwn(element, name) ? element[name] : [];
  // xml2js represents an empty element as a string.
  return (Array.isArray(children) ? children : []).map((child) => (typeof child === "object" ? child : { _: child }));
}

function onlyChild(element: XmlElement, name: string): XmlElement {
  const [child, ...others] = childrenOf(element, name);
  if (!child || others.length > 0)
    throw invalidAssertion(`it has ${child ? others.length + 1 : 0} elements ${name} instead of one`);
  return child;
}

function textOf(element: XmlElement): string | null {
  const hasChildren = Object.keys(element).some((key) => key !== "_" && key !== "$");
  return hasChildren || typeof element._ !== "string" ? null : element._.trim();
}

/** Attributes with exactly one value. */
function attributesOf(assertion: XmlElement): ReadonlyMap<string, string> {
  const attributes = childrenOf(assertion, "AttributeStatement").flatMap((each) => childrenOf(each, "Attribute"));
  return new Map(
    attributes.flatMap((attribute) => {
      const [value, ...others] = childrenOf(attribute, "AttributeValue");
      const text = value && others.length === 0 ? textOf(value) : null;
      return text && attribute.$?.Name ? [[attribute.$.Name, text] as const] : [];
    }),
  );
}

function contextsOf(authentication: XmlElement): string[] {
  return childrenOf(authentication, "AuthnContext")
    .flatMap((each) => childrenOf(each, "AuthnContextClassRef"))
    .flatMap((each) => textOf(each) ?? []);
}

function firstOf(attributes: ReadonlyMap<string, string>, names: readonly string[]): string | null {
  const name = names.find((each) => attributes.has(each));
  return name === undefined ? null : attributes.get(name)!;
}

function isInFuture(instant: string | undefined): boolean {
  return instant !== undefined && Date.now() - CLOCK_SKEW_MS < Date.parse(instant);
}

function invalidAssertion(description: string) {
  return assertionInvalid(new Error(`The assertion is refused: ${description}`));
}
