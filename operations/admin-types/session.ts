/** The response of `POST /session`. */
export type AdminSession = {
  readonly access_token: string;
  /** Seconds since 1970; null: never. */
  readonly expires_at: number | null;
  readonly role: string;
  readonly user: StudioUser | null;
  readonly studio: StudioSettings;
};

export type StudioUser = { readonly id: string; readonly email: string | null; readonly name: string | null };

export type StudioSettings = {
  readonly mode: "open" | "administrators" | "off";
  readonly sql: boolean;
  /** What a change of the schema does: writes into the current migration, runs at once, or is refused. */
  readonly migrations: "current" | "run" | "off";
  readonly development: boolean;
  /** Whether the service has the page `/graphiql`. */
  readonly graphiql: boolean;
};

/** The response of `POST /view-as`: a token to see what another caller sees. */
export type ViewedToken = {
  readonly access_token: string;
  /** Seconds since 1970. */
  readonly expires_at: number;
  readonly role: string;
  readonly claims: Readonly<Record<string, unknown>>;
};
