/** A provider of identities, as the row of `auth.providers` says; its secret is open. */
export type Provider = {
  readonly name: string;
  readonly kind: ProviderKind;
  readonly issuer: string;
  readonly clientId: string | null;
  readonly secret: string | null;
  readonly settings: ProviderSettings;
};

export type ProviderKind = "oidc" | "oauth2" | "saml";

/** What differs by kind, by the names that SQL has for it. */
export type ProviderSettings = {
  readonly scope?: string;
  /** Its endpoints may have private addresses: it stands in the same network. */
  readonly private_network?: boolean;
  /** Where it tells what: the claim, or the attribute of an assertion. */
  readonly claims?: Partial<Record<"subject" | "email" | "email_verified" | "name", string>>;
  readonly authorization_endpoint?: string;
  readonly token_endpoint?: string;
  readonly userinfo_endpoint?: string;
  readonly entry_point?: string;
  readonly logout_url?: string;
  /** The provider's, in PEM form. */
  readonly certificates?: readonly string[];
  /** Ours, of the key that signs requests. */
  readonly certificate?: string;
  readonly name_id_format?: string;
};

/** What a provider has said of somebody; all that is verified about it is verified. */
export type Statement = {
  readonly subject: string;
  readonly email: string | null;
  readonly isEmailVerified: boolean;
  readonly name: string | null;
  readonly hasSecondFactor: boolean;
  /** Accepted once; null where the exchange cannot be repeated anyhow. */
  readonly message: { readonly id: string; readonly expiresAt: Date } | null;
  /** What is told to the provider when the user signs out. */
  readonly signOut: SignOutHint;
};

export type SignOutHint = {
  /** By which the provider itself asks to end the session. */
  readonly subject: string;
  readonly sessionIndex: string | null;
  /** To be shown to the provider, and to nobody else. */
  readonly proof: string | null;
};

/** Ours, as the provider is told them. */
export type Addresses = {
  /** Where the browser comes back to. */
  readonly callback: string;
  /** Where it comes back to from signing out. */
  readonly signedOut: string;
  /** Of SAML: who we are, unless another entity id was chosen. */
  readonly metadata: string;
};

/** What is remembered while the browser is away, besides the state. */
export type Kept = {
  readonly nonce: string | null;
  readonly codeVerifier: string | null;
  readonly requestId: string | null;
};

/** How the browser came back. */
export type Arrival = {
  /** What follows the question mark, as it was sent. */
  readonly query: string;
  readonly form: URLSearchParams;
};

/** What a provider says, or asks, when its session ends. */
export type Farewell =
  | {
      readonly kind: "asked";
      readonly message: { readonly id: string; readonly expiresAt: Date };
      readonly subject: string;
      readonly sessionIndex: string | null;
      /** Where the provider is told whether it was done. */
      answerAddress(isDone: boolean): Promise<string>;
    }
  | { readonly kind: "answered"; readonly state: string };

/** One protocol: how a browser is sent to the provider, and what it brings back. */
export type Protocol = {
  depart(state: string): Promise<{ readonly address: string; readonly kept: Kept }>;
  stateOf(arrival: Arrival): string;
  arrive(arrival: Arrival, state: string, kept: Kept): Promise<Statement>;
  /** Where the provider ends its own session too; null when it has no such address. */
  signOutAddress(hint: SignOutHint, state: string): Promise<string | null>;
  /** How the browser comes back from there; or how the provider sends one, to end a session. */
  readFarewell(arrival: Arrival): Promise<Farewell>;
};
