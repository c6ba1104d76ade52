import { makeStore } from "../store.ts";
import { fetchResponse, ServiceError, sendRequest } from "./http.ts";

/** The response of `POST /admin/v1/session`. */
export type AdminSession = {
  readonly access_token: string;
  readonly expires_at: string | number;
  readonly role: string;
  readonly user: { readonly id: string; readonly email: string | null; readonly name: string | null } | null;
  readonly studio: StudioSettings;
};

export type StudioSettings = {
  readonly mode: "open" | "administrators";
  readonly sql: boolean;
  /** What a change of the schema does: writes into the current migration, runs at once, or is refused. */
  readonly migrations: "current" | "run" | "off";
  readonly development: boolean;
};

/** Another caller whose rows are shown, by a token that the server has made for that. */
export type ViewedCaller = {
  readonly access_token: string;
  readonly expires_at: string | number;
  readonly role: string;
  readonly claims: Readonly<Record<string, unknown>>;
  /** `authenticated`, or the e-mail address of a user. */
  readonly label: string;
};

export type SessionState =
  | { readonly status: "starting" }
  | { readonly status: "signed-out"; readonly error: Error | null }
  | { readonly status: "signed-in"; readonly session: AdminSession; readonly viewAs: ViewedCaller | null };

const SESSION_PATH = "/admin/v1/session";
const RENEWAL_SHARE = 0.8;
const MIN_RENEWAL_MS = 5000;

export const sessionState = makeStore<SessionState>({ status: "starting" });

let renewal: ReturnType<typeof setTimeout> | undefined;
/** Renews the session with the credential that it was made with. */
let openSession: () => Promise<AdminSession> = openWithCookie;

/** Makes a session from the cookie of the sign-in pages, or of whoever sits at the machine where STUDIO=open. */
export async function startSession(): Promise<void> {
  openSession = openWithCookie;
  await renewSession();
}

/** Makes a session with the access token or API key of an administrator. */
export async function signInWithToken(token: string): Promise<void> {
  openSession = () => openWithToken(currentToken() ?? token);
  await renewSession();
}

export function signOut(): void {
  clearTimeout(renewal);
  openSession = openWithCookie;
  sessionState.set({ status: "signed-out", error: null });
}

/** The token of the administrator; null without a session. */
export function currentToken(): string | null {
  const state = sessionState.get();
  return state.status === "signed-in" ? state.session.access_token : null;
}

/** The token that rows, realtime, GraphQL and tried requests are sent with. */
export function viewedToken(): string | null {
  const state = sessionState.get();
  return state.status === "signed-in" ? (state.viewAs ?? state.session).access_token : null;
}

/** Null shows everything as the administrator again. */
export function setViewAs(viewAs: ViewedCaller | null): void {
  const state = sessionState.get();
  if (state.status === "signed-in") sessionState.set({ ...state, viewAs });
}

export async function renewSession(): Promise<void> {
  clearTimeout(renewal);
  const before = sessionState.get();
  try {
    const session = await openSession();
    const viewAs = before.status === "signed-in" ? before.viewAs : null;
    sessionState.set({ status: "signed-in", session, viewAs });
    const lifetime = millisecondsUntil(session.expires_at);
    renewal = setTimeout(() => void renewSession(), Math.max(MIN_RENEWAL_MS, lifetime * RENEWAL_SHARE));
  } catch (error) {
    const isRefused = error instanceof ServiceError && [401, 403, 404].includes(error.status);
    sessionState.set({ status: "signed-out", error: isRefused ? null : (error as Error) });
  }
}

/** Milliseconds from now; the time is seconds since 1970, or as in ISO 8601. */
export function millisecondsUntil(time: string | number): number {
  return (typeof time === "number" ? time * 1000 : Date.parse(time)) - Date.now();
}

async function openWithCookie(): Promise<AdminSession> {
  const csrf = await fetchResponse("/csrf-token", { token: null, withCookie: true });
  const { csrfToken = "" } = csrf.ok ? ((await csrf.json()) as { csrfToken?: string }) : {};
  const headers = { "X-CSRF-Token": csrfToken };
  const response = await sendRequest(SESSION_PATH, { method: "POST", headers, token: null, withCookie: true });
  return (await response.json()) as AdminSession;
}

async function openWithToken(token: string): Promise<AdminSession> {
  const response = await fetchResponse(SESSION_PATH, { method: "POST", token });
  if (response.status === 404) return readToken(token);
  if (!response.ok)
    throw new ServiceError(response.status, { code: String(response.status), message: response.statusText });
  return (await response.json()) as AdminSession;
}

/** A service that makes no sessions: the token is used as it is. */
function readToken(token: string): AdminSession {
  const payload = token.split(".")[1] ?? "";
  const claims = JSON.parse(atob(payload.replaceAll("-", "+").replaceAll("_", "/"))) as { role: string; exp?: number };
  const studio: StudioSettings = { mode: "administrators", sql: true, migrations: "run", development: true };
  return { access_token: token, expires_at: claims.exp ?? 4e9, role: claims.role, user: null, studio };
}
