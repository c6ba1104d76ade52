/** The response of `POST /session`. */
export type AdminSession = {
  readonly access_token: string;
  /** Seconds since 1970; null if the token never expires. */
  readonly expires_at: number | null;
  readonly role: string;
  /** The user whom `auth.uid()` names in requests with the token. */
  readonly user: StudioUser | null;
  readonly studio: StudioSettings;
};

export type StudioUser = { readonly id: string; readonly email: string | null; readonly name: string | null };

export type StudioSettings = {
  readonly mode: "open" | "administrators" | "off";
  readonly sql: boolean;
  /** The effect of a schema change: it is written into the current migration, runs at once, or is refused. */
  readonly migrations: "current" | "run" | "off";
  readonly development: boolean;
  /** True if the service has the page `/graphiql`. */
  readonly graphiql: boolean;
  /** Identifies the database among those that are served at the same address, one after the other. */
  readonly project: string;
};

/** The response of `POST /view-as`: a token that shows another caller's view. */
export type ViewedToken = {
  readonly access_token: string;
  /** Seconds since 1970. */
  readonly expires_at: number;
  readonly role: string;
  readonly claims: Readonly<Record<string, unknown>>;
};
