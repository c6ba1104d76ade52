import { methodNotAllowed, notFound } from "./http-error.ts";
import type { GatewayRequest } from "./request.ts";
import type { GatewayResponse, ResponseBody } from "./response.ts";

/** A request whose path matched a pattern. */
export type MatchedRequest = GatewayRequest & {
  /** The values of `{…}` in the pattern. */
  readonly parameters: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
};

export type MatchedRequestHandler = (
  request: MatchedRequest,
) => GatewayResponse<ResponseBody> | Promise<GatewayResponse<ResponseBody>>;

/** Handlers by method and pattern of the path below a prefix: `POST /factors/{factor}/verify`, `GET /object/{path*}` for several segments. */
export type PatternRoutes = Readonly<Record<string, MatchedRequestHandler>>;

type FoundRoute = {
  readonly handle: MatchedRequestHandler;
  readonly parameters: Readonly<Record<string, string>>;
};

type RoutePattern = { readonly segments: readonly string[]; readonly methods: Map<string, MatchedRequestHandler> };

/** Finds the handler of a method and path; throws 404 or 405. */
export function makeRouteFinder(routes: PatternRoutes): (method: string, path: string) => FoundRoute {
  const patterns = new Map<string, RoutePattern>();
  for (const [name, handle] of Object.entries(routes)) {
    const [method = "", path = ""] = name.split(" ");
    const pattern = patterns.get(path) ?? { segments: path.split("/"), methods: new Map() };
    pattern.methods.set(method, handle);
    patterns.set(path, pattern);
  }
  return (method, path) => {
    // A trailing slash is ignored.
    const segments = path.replace(/\/$/, "").split("/");
    for (const pattern of patterns.values()) {
      const parameters = matchSegments(pattern.segments, segments);
      if (!parameters) continue;
      const handle = pattern.methods.get(method) ?? (method === "HEAD" ? pattern.methods.get("GET") : undefined);
      const allow = [...pattern.methods.keys(), "OPTIONS"].sort().join(", ");
      if (handle) return { handle, parameters };
      if (method === "OPTIONS") return { handle: () => optionsResponse(allow), parameters };
      throw methodNotAllowed(method, allow);
    }
    throw notFound();
  };
}

function optionsResponse(allow: string): GatewayResponse {
  return { status: 204, headers: { Allow: allow }, body: null };
}

/** The values of `{name}` and `{name*}` segments; null if the path does not match. */
function matchSegments(pattern: readonly string[], segments: readonly string[]): Record<string, string> | null {
  const rest = /^\{(\w+)\*\}$/.exec(pattern.at(-1)!)?.[1];
  if (rest === undefined ? pattern.length !== segments.length : pattern.length > segments.length) return null;
  const parameters: Record<string, string> = {};
  const single = rest === undefined ? pattern : pattern.slice(0, -1);
  if (rest !== undefined) parameters[rest] = decodeSegment(segments.slice(single.length).join("/"));
  for (const [index, expected] of single.entries()) {
    const name = /^\{(\w+)\}$/.exec(expected)?.[1];
    const segment = segments[index]!;
    if (name === undefined) {
      if (segment !== expected) return null;
    } else {
      parameters[name] = decodeSegment(segment);
    }
  }
  return parameters;
}

function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    throw notFound();
  }
}
