import { memoized } from "../../engine/memoized.ts";
import { isUnder } from "../gateway.ts";
import { PREFIX as TABLES } from "../table/prefix.ts";

/** A path template such as `/users/{id}`, for labels of low cardinality. */
export type Route = { readonly interface: string; readonly template: string };

export type RouteOf = (path: string) => Route;

type RoutePaths = {
  /** Exact paths. */
  readonly paths: readonly string[];
  /** Path prefixes. */
  readonly folders: readonly string[];
};

const CALLS = `${TABLES}/rpc/`;
const VERSIONED = /^\/api\/v\d(?=\/|$)/;
/** Path levels of the resource interface; actions and nested collections share a level. */
const LEVELS = [
  "",
  "/{collection}",
  "/{collection}/{id}",
  "/{collection}/{id}/{name}",
  "/{collection}/{id}/{name}/{id}",
];
const DEEPER = "/{other}";

/** Maps a path to its template, whether or not the resource exists: for metrics and traces. */
export function makeRouteOf({ paths, folders }: RoutePaths): RouteOf {
  // One object per template, because counters are looked up by identity.
  const routeOf = memoized((template: string): Route => ({ interface: interfaceOf(template), template }));
  const exact = new Map(paths.map((path) => [path, routeOf(path)]));
  const below = folders.map((folder) => ({ folder, itself: routeOf(folder), inside: routeOf(`${folder}/{name}`) }));
  const [root, table, call] = [routeOf(`${TABLES}/`), routeOf(`${TABLES}/{table}`), routeOf(`${CALLS}{function}`)];

  return (path) => {
    if (isUnder(TABLES, path)) {
      if (path.startsWith(CALLS)) return call;
      return path.length > TABLES.length + 1 ? table : root;
    }
    const route = exact.get(path);
    if (route) return route;
    for (const { folder, itself, inside } of below) {
      if (isUnder(folder, path)) return path.length > folder.length + 1 ? inside : itself;
    }
    return routeOf(resourceTemplate(path));
  };
}

/** `/api/v1/{collection}/{id}`, also for unknown collections. */
function resourceTemplate(path: string): string {
  const base = VERSIONED.exec(path)?.[0] ?? "";
  const levels = path.slice(base.length).split("/", LEVELS.length + 1).length - 1;
  return `${base}${LEVELS[levels] ?? DEEPER}`;
}

function interfaceOf(template: string): string {
  if (template.startsWith(TABLES)) return "table";
  if (template.startsWith("/graphql")) return "graphql";
  if (template.startsWith("/realtime/")) return "realtime";
  if (/^\/(auth|api\/(auth|mfa))\//.test(template)) return "auth";
  return template.includes("{collection}") || template.endsWith(DEEPER) ? "resource" : "service";
}
