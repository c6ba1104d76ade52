import type { Provider, Statement } from "./provider.ts";
import { statementRefused } from "./refusals.ts";

/** An element as xml2js has it: text in `_`, attributes in `$`, children by their names. */
export type Element = { readonly _?: string; readonly $?: Readonly<Record<string, string>> } & {
  readonly [child: string]: unknown;
};

type Expected = { readonly provider: Provider; readonly recipient: string; readonly requestId: string };

const BEARER = "urn:oasis:names:tc:SAML:2.0:cm:bearer";
/** How far the provider's clock may be apart from ours. */
export const SKEW_MS = 30_000;
/** What providers call a sign-in by several factors. */
const SECOND_FACTORS: readonly string[] = [
  "https://refeds.org/profile/mfa",
  "http://schemas.microsoft.com/claims/multipleauthn",
  "urn:oasis:names:tc:SAML:2.0:ac:classes:MobileTwoFactorContract",
  "urn:oasis:names:tc:SAML:2.0:ac:classes:TimeSyncToken",
];

/**
 * What the signed bytes say, which are all that is read here: the library has verified their signature, audience and
 * times; who made them, for which request and for whom is looked at now.
 */
export function readAssertion(assertion: Element, { provider, recipient, requestId }: Expected): Statement {
  const { issuer, settings } = provider;
  if (textOf(only(assertion, "Issuer")) !== issuer) throw refused("it has another issuer");
  const subject = only(assertion, "Subject");
  const nameId = textOf(only(subject, "NameID"));
  const confirmation = childrenOf(subject, "SubjectConfirmation")
    .filter(({ $ }) => $?.Method === BEARER)
    .flatMap((each) => childrenOf(each, "SubjectConfirmationData"))
    .find(({ $ }) => $?.Recipient === recipient && $.InResponseTo === requestId && isYetToCome($.NotOnOrAfter));
  if (!confirmation) throw refused("no confirmation is for us, for this request and for now");
  if (childrenOf(only(assertion, "Conditions"), "AudienceRestriction").length === 0)
    throw refused("it is for any audience");
  const authentication = only(assertion, "AuthnStatement");
  const { SessionIndex: sessionIndex = null, SessionNotOnOrAfter: end } = authentication.$ ?? {};
  if (end !== undefined && !isYetToCome(end)) throw refused("its session has ended");

  const attributes = attributesOf(assertion);
  const attribute = (name: string | undefined) => (name === undefined ? null : (attributes.get(name) ?? null));
  const { claims = {} } = settings;
  const stable = claims.subject === undefined ? nameId : attribute(claims.subject);
  if (!stable || !nameId) throw refused("it does not say who it is about");
  const email = attribute(claims.email) ?? firstOf(attributes, EMAILS) ?? (nameId.includes("@") ? nameId : null);
  return {
    subject: stable,
    email,
    isEmailVerified: attribute(claims.email_verified) === "true",
    name: attribute(claims.name) ?? firstOf(attributes, NAMES),
    hasSecondFactor: contextsOf(authentication).some((context) => SECOND_FACTORS.includes(context)),
    message: { id: assertion.$!.ID!, expiresAt: new Date(Date.parse(confirmation.$!.NotOnOrAfter!) + SKEW_MS) },
    signOut: { subject: nameId, sessionIndex, proof: JSON.stringify(only(subject, "NameID").$ ?? {}) },
  };
}

/** What common providers call them. */
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

function childrenOf(element: Element, name: string): readonly Element[] {
  const children = Object.hasOwn(element, name) ? element[name] : [];
  // One that is empty is a text.
  return (Array.isArray(children) ? children : []).map((child) => (typeof child === "object" ? child : { _: child }));
}

function only(element: Element, name: string): Element {
  const [child, ...others] = childrenOf(element, name);
  if (!child || others.length > 0) throw refused(`it has not one ${name}, but ${child ? others.length + 1 : 0}`);
  return child;
}

function textOf(element: Element): string | null {
  const hasChildren = Object.keys(element).some((key) => key !== "_" && key !== "$");
  return hasChildren || typeof element._ !== "string" ? null : element._.trim();
}

/** Those of one value. */
function attributesOf(assertion: Element): ReadonlyMap<string, string> {
  const attributes = childrenOf(assertion, "AttributeStatement").flatMap((each) => childrenOf(each, "Attribute"));
  return new Map(
    attributes.flatMap((attribute) => {
      const [value, ...others] = childrenOf(attribute, "AttributeValue");
      const text = value && others.length === 0 ? textOf(value) : null;
      return text && attribute.$?.Name ? [[attribute.$.Name, text] as const] : [];
    }),
  );
}

function contextsOf(authentication: Element): string[] {
  return childrenOf(authentication, "AuthnContext")
    .flatMap((each) => childrenOf(each, "AuthnContextClassRef"))
    .flatMap((each) => textOf(each) ?? []);
}

function firstOf(attributes: ReadonlyMap<string, string>, names: readonly string[]): string | null {
  const name = names.find((each) => attributes.has(each));
  return name === undefined ? null : attributes.get(name)!;
}

function isYetToCome(instant: string | undefined): boolean {
  return instant !== undefined && Date.now() - SKEW_MS < Date.parse(instant);
}

function refused(what: string) {
  return statementRefused(new Error(`The assertion is refused: ${what}`));
}
