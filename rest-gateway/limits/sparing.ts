import { ApiError } from "../../engine/errors.ts";
import { countedAddress } from "../../engine/limits/counted-address.ts";
import type { SharedLimit } from "../../engine/limits/shared-limit.ts";
import type { Routes } from "../gateway.ts";
import type { Handler } from "../http.ts";

/** What makes an account or sends a mail, which costs more than an answer: a password to hash, or somebody else's patience. */
export function sparing(routes: Routes, paths: readonly string[], limit: SharedLimit): Routes {
  const known = paths.filter((path) => routes[path]?.POST);
  return { ...routes, ...Object.fromEntries(known.map((path) => [path, within(limit, routes[path]!)])) };
}

function within(limit: SharedLimit, methods: Routes[string]): Routes[string] {
  const handle = methods.POST!;
  const POST: Handler = async (request) => {
    const seconds = await limit.take(countedAddress(request.connection().address));
    if (seconds === null) return handle(request);
    throw new ApiError(429, "RATE_LIMITED", "Too much of this came from your address.", {
      hint: `Come back in ${seconds} seconds.`,
      headers: { "Retry-After": String(seconds) },
    });
  };
  return { ...methods, POST };
}
