/** The response of `GET /user-keys`: the keys by which rows and policies refer to users (`auth.uid()`), by user id. */
export type UserKeys = { readonly keys: Readonly<Record<string, string>> };

/** The response of `POST /invitations`. */
export type InvitedUser = { readonly id: string };

type UserSession = {
  readonly id: string;
  readonly kind: "browser" | "tokens";
  readonly user: { readonly id: string; readonly email: string | null; readonly username: string };
  readonly signed_in_at: string;
  readonly last_used_at: string;
  /** The time at which the session ends if it is not used. */
  readonly expires_at: string;
  readonly address: string | null;
  readonly user_agent: string | null;
  /** The assurance level: 2 after a second factor; null for a browser. */
  readonly aal: number | null;
};

/** The response of `GET /sessions`. */
export type SessionList = { readonly sessions: readonly UserSession[] };

type IdentityProvider = {
  readonly name: string;
  readonly kind: string;
  readonly title: string;
  readonly issuer: string;
  readonly client_id: string | null;
  readonly enabled: boolean;
  readonly sign_ups: boolean;
  /** The number of linked users. */
  readonly identities: number;
};

/** The response of `GET /providers`. */
export type ProviderList = { readonly providers: readonly IdentityProvider[] };

export type KeptEmail = { readonly at: string; readonly to: string; readonly subject: string; readonly text: string };

/** The response of `GET /mails`. */
export type KeptEmails = {
  /** True if the service keeps e-mails. */
  readonly kept: boolean;
  readonly mails: readonly KeptEmail[];
};

/** A deleted user has neither id nor address. */
type AuditedUser = { readonly key: string; readonly id: string | null; readonly email: string | null };

export type AuditRecord = {
  readonly id: string;
  readonly at: string;
  /** `session.created` */
  readonly event: string;
  /** The affected user. */
  readonly user: AuditedUser | null;
  /** The acting user, if it was not the affected one. */
  readonly by: AuditedUser | null;
  readonly address: string | null;
  readonly request_id: string | null;
  readonly details: Readonly<Record<string, unknown>>;
};

/** A page of `GET /audit-log`. */
export type AuditPage = { readonly entries: readonly AuditRecord[]; readonly next: string | null };

export type SignInSetting = {
  readonly name: string;
  /** Null if the setting is not set, or is a secret. */
  readonly value: string | null;
  readonly is_set: boolean;
  readonly is_secret: boolean;
  readonly is_default: boolean;
  /** The name by which `alter role … set` sets it; null if only the environment does. */
  readonly database_name: string | null;
  /** The text, with links and code as in Markdown. */
  readonly description: string;
};

/** The response of `GET /sign-in-settings`. */
export type SignInSettingList = { readonly settings: readonly SignInSetting[] };
