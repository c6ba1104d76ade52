import { type HttpRequest, ServiceError, sendRequest } from "./http.ts";
import { currentToken, renewSession, renewView, viewedToken } from "./session.ts";

export { isAborted, ServiceError } from "./http.ts";

export type ServiceRequest = HttpRequest & {
  /** The caller whose token is sent: the administrator, or the caller of "View as". The default depends on the path. */
  readonly as?: "administrator" | "viewed";
};

/** Requests that always have the token of the administrator, also during "View as". */
const ADMINISTRATION = /^\/(admin\/v1|auth\/v1\/admin|api\/auth|auth\/keys)(\/|$|\?)/;

/** Sends a request with the token of the session. Throws ServiceError for a status of 400 or more. */
export async function request(path: string, options: ServiceRequest = {}): Promise<Response> {
  try {
    return await sendRequest(path, { ...options, token: tokenFor(path, options) });
  } catch (error) {
    // The token may have expired while the page slept.
    if (!(error instanceof ServiceError && error.status === 401)) throw error;
    const isViewed = tokenFor(path, options) !== currentToken();
    await renewSession();
    // The request must not be repeated as the administrator.
    if (isViewed && !(await renewView())) throw error;
    return sendRequest(path, { ...options, token: tokenFor(path, options) });
  }
}

export async function requestJson<Body>(path: string, options: ServiceRequest = {}): Promise<Body> {
  return (await (await request(path, options)).json()) as Body;
}

function tokenFor(path: string, { as }: ServiceRequest): string | null {
  return (as ?? (ADMINISTRATION.test(path) ? "administrator" : "viewed")) === "administrator"
    ? currentToken()
    : viewedToken();
}
