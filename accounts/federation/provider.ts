/** The prefix of all paths for providers. */
export const PROVIDERS_PATH = "/auth/providers";

/** An identity provider: a row of `auth.providers` with its secret decrypted. */
export type Provider = {
  readonly name: string;
  readonly kind: ProviderKind;
  readonly issuer: string;
  readonly clientId: string | null;
  readonly secret: string | null;
  readonly settings: ProviderSettings;
};

export type ProviderKind = "oidc" | "oauth2" | "saml";

/** Settings by kind of provider, with the names of the JSON column. */
export type ProviderSettings = {
  readonly scope?: string;
  /** True if endpoints may have private addresses, for a provider in the same network. */
  readonly private_network?: boolean;
  /** The names of claims, or of attributes of a SAML assertion. */
  readonly claims?: Partial<Record<"subject" | "email" | "email_verified" | "name", string>>;
  readonly authorization_endpoint?: string;
  readonly token_endpoint?: string;
  readonly userinfo_endpoint?: string;
  readonly entry_point?: string;
  readonly logout_url?: string;
  /** The provider's certificates, in PEM format. */
  readonly certificates?: readonly string[];
  /** The service's own certificate, for the key that signs requests. */
  readonly certificate?: string;
  readonly name_id_format?: string;
  /** OpenID Connect: further client ids, of mobile applications, whose ID tokens are accepted. */
  readonly client_ids?: readonly string[];
  /** SAML: the domains of the e-mail addresses of its users. */
  readonly domains?: readonly string[];
};

/** A user's identity at a provider, with all signatures and checks verified. */
export type ExternalIdentity = {
  readonly subject: string;
  readonly email: string | null;
  readonly isEmailVerified: boolean;
  readonly name: string | null;
  /** The https URL of a picture of the user. */
  readonly picture?: string | null;
  readonly hasSecondFactor: boolean;
  /** The message's id, to accept it only once; null if the protocol prevents replay itself. */
  readonly message: { readonly id: string; readonly expiresAt: Date } | null;
  /** The values needed to sign the user out at the provider. */
  readonly signOut: SignOutHint;
};

export type SignOutHint = {
  /** The values that identify the session in the provider's logout requests. */
  readonly subject: string;
  readonly sessionIndex: string | null;
  /** A proof that is sent to the provider only (an ID token, or the NameID's attributes). */
  readonly proof: string | null;
};

/** The URLs of this service that are registered at the provider. */
export type ServiceUrls = {
  /** The redirect URI of sign-ins. */
  readonly callback: string;
  /** The redirect URI of sign-outs. */
  readonly signedOut: string;
  /** The SAML metadata, which is also the default entity id. */
  readonly metadata: string;
};

/** Values stored with the state, to verify the callback. */
export type FlowChecks = {
  readonly nonce: string | null;
  readonly codeVerifier: string | null;
  readonly requestId: string | null;
};

/** The request that the provider redirected the browser to. */
export type CallbackRequest = {
  /** The raw query string. */
  readonly query: string;
  readonly form: URLSearchParams;
};

/** A logout request from the provider, or its response to ours. */
export type LogoutMessage =
  | {
      readonly kind: "request";
      readonly message: { readonly id: string; readonly expiresAt: Date };
      readonly subject: string;
      readonly sessionIndex: string | null;
      /** The URL that reports the result to the provider. */
      responseUrl(isDone: boolean): Promise<string>;
    }
  | { readonly kind: "response"; readonly state: string };

/** Parameters of the authorization request that a client may add: further scopes, and hints of OpenID Connect. */
export type SignInParameters = { readonly scopes: readonly string[]; readonly hints: Readonly<Record<string, string>> };

/** A sign-in protocol for one provider. */
export type ProviderProtocol = {
  startSignIn(state: string, more?: SignInParameters): Promise<{ readonly url: string; readonly checks: FlowChecks }>;
  stateOf(callback: CallbackRequest): string;
  readIdentity(callback: CallbackRequest, state: string, checks: FlowChecks): Promise<ExternalIdentity>;
  /** The provider's logout URL; null if it has none. */
  signOutUrl(hint: SignOutHint, state: string): Promise<string | null>;
  /** Reads the provider's response to a logout, or a logout request of the provider. */
  readLogout(callback: CallbackRequest): Promise<LogoutMessage>;
};

/** The redirect URI of sign-ins by clients of Supabase Auth, which register one for all providers. */
export const CLIENT_CALLBACK_PATH = "/auth/v1/callback";

/** The URLs differ by provider, so that the response of one is never accepted as another's (RFC 9700 §4.4). */
export function serviceUrlsFor(name: string, siteUrl: string): ServiceUrls {
  const base = `${siteUrl}${PROVIDERS_PATH}/${name}`;
  return { callback: `${base}/callback`, signedOut: `${base}/signed-out`, metadata: `${base}/metadata` };
}
