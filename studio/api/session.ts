import type { AdminSession } from "#operations/admin-types";
import { makeStore } from "../store.ts";
import { fetchResponse, ServiceError, sendRequest } from "./http.ts";
import {
  type EndedView,
  isRefusedChoice,
  keepInTab,
  readViewChoice,
  requestViewedCaller,
  storeViewChoice,
  type ViewChoice,
  type ViewedCaller,
} from "./viewed-caller.ts";

/** The reason why the sign-in pages do not lead to a session. */
type SignInObstacle = "no accounts" | "not an administrator";

export type SessionState =
  | { readonly status: "starting" }
  | { readonly status: "signed-out"; readonly error: Error | null; readonly obstacle: SignInObstacle | null }
  | { readonly status: "signed-in"; readonly session: AdminSession; readonly viewAs: ViewedCaller | null };

const SESSION_PATH = "/admin/v1/session";
const RENEWAL_SHARE = 0.8;
const MIN_RENEWAL_MS = 5000;
const MAX_RENEWAL_MS = 3_600_000;

export const sessionState = makeStore<SessionState>({ status: "starting" });
/** The last view that has ended by itself. */
export const endedView = makeStore<EndedView | null>(null);

let renewal: ReturnType<typeof setTimeout> | undefined;
let viewRenewal: ReturnType<typeof setTimeout> | undefined;
let renewing: Promise<void> | null = null;
/** Renews the session with its original credential. */
let openSession: () => Promise<AdminSession> = openWithCookie;
/** True if the service has the sign-in pages, which need its table of accounts. */
let hasSignInPages = true;

/** Makes a session from the cookie of the sign-in pages, or, with STUDIO=open, for any browser on the machine. */
export async function startSession(): Promise<void> {
  openSession = openWithCookie;
  await renewSession();
}

/** Makes a session with the access token or API key of an administrator. */
export async function signInWithToken(token: string): Promise<void> {
  openSession = () => openWithToken(currentToken() ?? token);
  await renewSession();
}

/** Ends the session of the browser too: else the page would use it again when it is loaded. */
export async function signOut(): Promise<void> {
  const isBrowsers = openSession === openWithCookie && hasSignInPages;
  stopViewing();
  clearTimeout(renewal);
  openSession = openWithCookie;
  // Without the view, nothing may be shown or sent as the administrator while the session ends.
  sessionState.set({ status: "starting" });
  const error = isBrowsers ? await endBrowserSession() : null;
  sessionState.set({ status: "signed-out", error, obstacle: hasSignInPages ? null : "no accounts" });
}

/** Returns the error if the session goes on. */
async function endBrowserSession(): Promise<Error | null> {
  try {
    const headers = { "X-CSRF-Token": await readCsrfToken() };
    await sendRequest("/api/auth/logout", { method: "POST", headers, token: null, withCookie: true });
    return null;
  } catch (error) {
    // With STUDIO=open the browser may have no session.
    return error instanceof ServiceError && error.status === 401 ? null : (error as Error);
  }
}

/** The token of the administrator; null without a session. */
export function currentToken(): string | null {
  const state = sessionState.get();
  return state.status === "signed-in" ? state.session.access_token : null;
}

/** The token that rows, files and realtime are requested with. */
export function viewedToken(): string | null {
  const state = sessionState.get();
  return state.status === "signed-in" ? (state.viewAs ?? state.session).access_token : null;
}

/** The role that rows are read with; null without a session. */
export function viewedRole(): string | null {
  const state = sessionState.get();
  return state.status === "signed-in" ? (state.viewAs ?? state.session).role : null;
}

/** Identifies the caller whose rows are shown: the text stays the same when the caller's token is renewed. */
export function viewedCaller(state: SessionState): string {
  if (state.status !== "signed-in") return "";
  if (!state.viewAs) return JSON.stringify([state.session.role]);
  const { role, label, claims } = state.viewAs;
  const { iat: _issued, exp: _expires, jti: _id, ...lasting } = claims;
  return JSON.stringify([role, label, lasting]);
}

/** Returns the name of the user whom `auth.uid()` names in the shown requests; null if it is null there. */
export function actingUser(state: SessionState): string | null {
  if (state.status !== "signed-in") return null;
  const { viewAs, session } = state;
  if (viewAs) return viewAs.claims.sub === undefined ? null : viewAs.label;
  return session.user && (session.user.name || session.user.email || session.user.id);
}

/** Sets the caller whose rows are shown; null shows everything as the administrator again. */
function setViewAs(viewAs: ViewedCaller | null): void {
  const state = sessionState.get();
  if (state.status === "signed-in") sessionState.set({ ...state, viewAs });
}

/** Shows what the caller sees, also after the page was loaded again. Requests a token, and the next one before it expires. */
export async function viewAs(choice: ViewChoice): Promise<void> {
  const state = sessionState.get();
  if (state.status !== "signed-in") return;
  const viewed = await requestViewedCaller(choice, state.session.access_token);
  storeViewChoice(state.session.studio.project, choice);
  setViewAs(viewed);
  renewViewBeforeEnd(viewed);
}

/** Shows everything as the administrator again. */
export function stopViewing(): void {
  const state = sessionState.get();
  clearTimeout(viewRenewal);
  if (state.status !== "signed-in") return;
  storeViewChoice(state.session.studio.project, null);
  setViewAs(null);
}

/**
 * Requests another token for the viewed caller. Returns false if there is none: because the view has ended, as when the user was
 * deleted, or for now, as without a network. Then the view goes on, so that nothing is shown or written as the administrator.
 */
export async function renewView(): Promise<boolean> {
  const state = sessionState.get();
  if (state.status !== "signed-in" || !state.viewAs) return false;
  try {
    await viewAs(state.viewAs);
    return true;
  } catch (error) {
    if (isRefusedChoice(error)) {
      endView(state.session, state.viewAs, error as Error);
      setViewAs(null);
    } else {
      clearTimeout(viewRenewal);
      // The administrator's token may have expired too.
      viewRenewal = setTimeout(() => void renewSession().then(renewView), MIN_RENEWAL_MS);
    }
    return false;
  }
}

/** Returns the caller that was viewed when the page was left. */
async function restoreView(session: AdminSession): Promise<ViewedCaller | null> {
  const choice = readViewChoice(session.studio.project);
  keepInTab(session.studio.project, choice);
  if (choice === null) return null;
  try {
    const viewed = await requestViewedCaller(choice, session.access_token);
    renewViewBeforeEnd(viewed);
    return viewed;
  } catch (error) {
    endView(session, choice, error as Error);
    return null;
  }
}

function renewViewBeforeEnd(viewed: ViewedCaller): void {
  clearTimeout(viewRenewal);
  const lifetime = viewed.expires_at * 1000 - Date.now();
  viewRenewal = setTimeout(() => void renewView(), lifetime * RENEWAL_SHARE);
}

function endView({ studio }: AdminSession, { label }: ViewChoice, error: Error): void {
  clearTimeout(viewRenewal);
  if (isRefusedChoice(error)) storeViewChoice(studio.project, null);
  endedView.set({ label, reason: error.message });
}

/** Renews the session. Requests that fail at the same time share one renewal. */
export function renewSession(): Promise<void> {
  renewing ??= replaceSession().finally(() => {
    renewing = null;
  });
  return renewing;
}

async function replaceSession(): Promise<void> {
  clearTimeout(renewal);
  try {
    const session = await openSession();
    const before = sessionState.get();
    const viewed = before.status === "signed-in" ? before.viewAs : await restoreView(session);
    sessionState.set({ status: "signed-in", session, viewAs: viewed });
    if (session.expires_at !== null) renewIn((session.expires_at * 1000 - Date.now()) * RENEWAL_SHARE);
  } catch (error) {
    const isRefused = error instanceof ServiceError && [401, 403, 404].includes(error.status);
    // The session survives a restart of the service.
    if (!isRefused && sessionState.get().status === "signed-in") renewIn(MIN_RENEWAL_MS);
    else
      sessionState.set({
        status: "signed-out",
        error: isRefused ? null : (error as Error),
        obstacle: obstacleOf(error as Error),
      });
  }
}

function obstacleOf(error: Error): SignInObstacle | null {
  if (!hasSignInPages) return "no accounts";
  const isForbidden = error instanceof ServiceError && error.status === 403;
  return isForbidden && openSession === openWithCookie ? "not an administrator" : null;
}

function renewIn(milliseconds: number): void {
  const delay = Math.min(MAX_RENEWAL_MS, Math.max(MIN_RENEWAL_MS, milliseconds));
  renewal = setTimeout(() => void renewSession(), delay);
}

async function openWithCookie(): Promise<AdminSession> {
  const headers = { "X-CSRF-Token": await readCsrfToken() };
  const response = await sendRequest(SESSION_PATH, { method: "POST", headers, token: null, withCookie: true });
  return (await response.json()) as AdminSession;
}

async function readCsrfToken(): Promise<string> {
  const response = await fetchResponse("/csrf-token", { token: null, withCookie: true });
  hasSignInPages = response.status !== 404;
  const { csrfToken = "" } = response.ok ? ((await response.json()) as { csrfToken?: string }) : {};
  return csrfToken;
}

async function openWithToken(token: string): Promise<AdminSession> {
  const response = await sendRequest(SESSION_PATH, { method: "POST", token });
  return (await response.json()) as AdminSession;
}
