import type { LivingSession, Sessions } from "../../engine/auth/sessions.ts";
import { keepSession, readSessionCookie } from "../../engine/caller/session-cookie.ts";
import type { GatewayRequest } from "../http.ts";

export type ShownSession = LivingSession & { readonly id: string };

/** The living session that the browser shows, and is told to keep; null without one. */
export async function findSession(
  request: GatewayRequest,
  sessions: Pick<Sessions, "use">,
): Promise<ShownSession | null> {
  const id = readSessionCookie(request.headers);
  const session = id === null ? null : await sessions.use(id);
  if (!session) return null;
  request.tell(keepSession(id!));
  return { ...session, id: id! };
}
