import { memoized } from "../../engine/memoized.ts";
import { isUnder } from "../gateway.ts";
import { PREFIX as TABLES } from "../table/prefix.ts";

/** An address with names in the place of what differs from request to request. There are but a few. */
export type Route = { readonly interface: string; readonly template: string };

export type RouteOf = (path: string) => Route;

type Places = {
  /** Addresses that are written out. */
  readonly paths: readonly string[];
  /** What has everything below a path. */
  readonly folders: readonly string[];
};

const CALLS = `${TABLES}/rpc/`;
const VERSIONED = /^\/api\/v\d(?=\/|$)/;
/** Of the conventional interface; an action stands where a collection within a row does. */
const LEVELS = [
  "",
  "/{collection}",
  "/{collection}/{id}",
  "/{collection}/{id}/{name}",
  "/{collection}/{id}/{name}/{id}",
];
const DEEPER = "/{other}";

/** The same whatever is asked for there, and whether it exists or not: for metrics and traces. */
export function makeRouteOf({ paths, folders }: Places): RouteOf {
  // One object for each, which it is then found by.
  const known = memoized((template: string): Route => ({ interface: interfaceOf(template), template }));
  const exact = new Map(paths.map((path) => [path, known(path)]));
  const below = folders.map((folder) => ({ folder, itself: known(folder), inside: known(`${folder}/{name}`) }));
  const [root, table, call] = [known(`${TABLES}/`), known(`${TABLES}/{table}`), known(`${CALLS}{function}`)];

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
    return known(resourceTemplate(path));
  };
}

/** `/api/v1/{collection}/{id}`: who asks for what is not there is counted with the others. */
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
