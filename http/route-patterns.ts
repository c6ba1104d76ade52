import { methodNotAllowed, notFound } from "./http-error.ts";
import type { GatewayHandler, GatewayRequest } from "./request.ts";
import type { GatewayResponse, ResponseBody } from "./response.ts";

/** Calls the handler of the method; answers OPTIONS, and throws 405 for other methods. */
export function dispatchMethod(
  methods: ReadonlyMap<string, GatewayHandler>,
  request: GatewayRequest,
): ReturnType<GatewayHandler> {
  const { method } = request;
  const handler = methods.get(method) ?? (method === "HEAD" ? methods.get("GET") : undefined);
  if (handler) return handler(request);
  const allow = allowHeader([...methods.keys()]);
  if (method === "OPTIONS") return { status: 204, headers: { Allow: allow }, body: null };
  throw methodNotAllowed(method, allow);
}

function allowHeader(methods: readonly string[]): string {
  const derived = methods.includes("GET") ? ["HEAD", "OPTIONS"] : ["OPTIONS"];
  return [...new Set([...methods, ...derived])].sort().join(", ");
}

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

type RoutePattern = {
  readonly segments: readonly PatternSegment[];
  /** The name of `{name*}` at the end; null if there is none. */
  readonly rest: string | null;
  readonly methods: Map<string, MatchedRequestHandler>;
};

/** A literal segment, or the name of `{name}`. */
type PatternSegment = { readonly literal: string } | { readonly name: string };

/** Finds the handler of a method and path; throws 404 or 405. */
export function makeRouteFinder(routes: PatternRoutes): (method: string, path: string) => FoundRoute {
  const patterns = new Map<string, RoutePattern>();
  for (const [name, handle] of Object.entries(routes)) {
    const [method = "", path = ""] = name.split(" ");
    const pattern = patterns.get(path) ?? { ...parsePattern(path), methods: new Map() };
    pattern.methods.set(method, handle);
    patterns.set(path, pattern);
  }
  return (method, path) => {
    // A trailing slash is ignored.
    const segments = path.replace(/\/$/, "").split("/");
    for (const pattern of patterns.values()) {
      const parameters = matchSegments(pattern, segments);
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

function parsePattern(path: string): Pick<RoutePattern, "segments" | "rest"> {
  const segments = path.split("/");
  const rest = /^\{(\w+)\*\}$/.exec(segments.at(-1)!)?.[1] ?? null;
  const single = rest === null ? segments : segments.slice(0, -1);
  return {
    rest,
    segments: single.map((segment) => {
      const name = /^\{(\w+)\}$/.exec(segment)?.[1];
      return name === undefined ? { literal: segment } : { name };
    }),
  };
}

/** Returns the values of `{name}` and `{name*}` segments; null if the path does not match. */
function matchSegments(
  { segments: expected, rest }: RoutePattern,
  segments: readonly string[],
): Record<string, string> | null {
  const isLong = segments.length > expected.length;
  if (rest === null ? segments.length !== expected.length : !isLong) return null;
  if (expected.some((each, index) => "literal" in each && each.literal !== segments[index])) return null;
  const parameters: Record<string, string> = {};
  if (rest !== null) parameters[rest] = decodeSegment(segments.slice(expected.length).join("/"));
  for (const [index, each] of expected.entries())
    if ("name" in each) parameters[each.name] = decodeSegment(segments[index]!);
  return parameters;
}

function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    throw notFound();
  }
}
