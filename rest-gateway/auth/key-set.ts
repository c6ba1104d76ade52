import type { TokenKeys } from "../../engine/caller/keys.ts";
import type { Routes } from "../gateway.ts";
import { json } from "../http.ts";

const FIVE_MINUTES = { "Cache-Control": "public, max-age=300" };

/** Publishes the public keys that verify our tokens (RFC 7517). Shared secrets (HS256) are not published. */
export function keySetRoutes({ algorithm, verifying }: TokenKeys): Routes {
  const published = algorithm === "RS256" ? verifying : [];
  const keys = published.map(({ id, key }) => {
    return { ...key.export({ format: "jwk" }), kid: id, alg: algorithm, use: "sig" };
  });
  return { "/.well-known/jwks.json": { GET: () => json(200, { keys }, FIVE_MINUTES) } };
}
