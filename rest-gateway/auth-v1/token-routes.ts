import type { AuthRouteHandler, AuthV1Routes, AuthV1Services } from "./auth-v1-request.ts";
import { authError } from "./errors.ts";

/** Exchanges what proves a sign-in for a session. */
export function tokenRoutes(_services: AuthV1Services): AuthV1Routes {
  const grants: Readonly<Record<string, AuthRouteHandler>> = {};
  return {
    "POST /token": (request) => {
      const type = request.query.get("grant_type") ?? "";
      const grant = Object.hasOwn(grants, type) ? grants[type]! : null;
      if (grant === null) throw authError(400, "validation_failed", `Unsupported grant_type: "${type}"`);
      return grant(request);
    },
  };
}
