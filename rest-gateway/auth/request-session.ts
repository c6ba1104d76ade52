import type { LiveSession, Sessions } from "../../engine/auth/sessions.ts";
import { keepSession, readSessionCookie } from "../../engine/caller/session-cookie.ts";
import type { GatewayRequest } from "../http.ts";

export type RequestSession = LiveSession & { readonly id: string };

/** The session of the request's cookie, which is renewed; null if there is none. */
export async function findSession(
  request: GatewayRequest,
  sessions: Pick<Sessions, "use">,
): Promise<RequestSession | null> {
  const id = readSessionCookie(request.headers);
  const session = id === null ? null : await sessions.use(id);
  if (!session) return null;
  request.tell(keepSession(id!));
  return { ...session, id: id! };
}
