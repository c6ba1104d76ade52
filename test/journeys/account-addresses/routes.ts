import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { readConfig } from "../../../config/config.ts";
import type { GatewayRoutes } from "../../../http/request.ts";
import { administratorRoutes } from "../../../operations/admin/admin-routes.ts";
import { sessionRoutes } from "../../../operations/admin/session-routes.ts";
import { OPENAPI_PATH } from "../../../rest-gateway/openapi/resource/document.ts";
import { authRoutes } from "../../../rest-gateway/sign-in/auth-routes.ts";
import { authV1Routes } from "../../../rest-gateway/sign-in/auth-v1/auth-v1-routes.ts";
import { commonRoutes, signInRoutes, signOutRoutes } from "../../../rest-gateway/sign-in/provider-routes.ts";
import { REPOSITORY } from "../../repository.ts";
import { SECRET } from "../../secret.ts";
import { ask, post } from "./holder.ts";
import { PUBLIC_URL, type Site } from "./site.ts";
import type { Way } from "./ways.ts";

/** Stands for all services: the routes are listed, and none is called. */
// biome-ignore lint/suspicious/noExplicitAny: it has every type.
const anything: any = new Proxy(() => anything, {
  get: (_target, name) => {
    if (name === Symbol.iterator) return [][Symbol.iterator];
    return name === Symbol.toPrimitive ? () => "" : anything;
  },
});

const { config: CONFIG } = readConfig({ JWT_SECRET: SECRET, PUBLIC_URL, OAUTH_SERVER: "on" });
const SERVICES = new Proxy(anything, { get: (_target, name) => (name === "config" ? CONFIG : anything) });

const listed = (routes: GatewayRoutes, prefix = ""): string[] =>
  Object.entries(routes).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method} ${prefix}${path}`),
  );

const below = (prefix: string, routes: object): string[] =>
  Object.keys(routes).map((name) => name.replace(" ", ` ${prefix}`));

/** The routes of accounts and users, and the mutations and functions, of the service that runs. */
export async function listRoutes(site: Site): Promise<string[]> {
  const routes = [
    ...listed(authRoutes(SERVICES)),
    ...listed(commonRoutes(SERVICES), "/auth/providers/"),
    ...listed({ ...signInRoutes(SERVICES), ...signOutRoutes(SERVICES) }, "/auth/providers/{name}/"),
    ...below("/auth/v1", authV1Routes(SERVICES)),
    ...below("/admin/v1", { ...sessionRoutes(SERVICES), ...administratorRoutes(SERVICES) }),
    ...(await listUserRoutes(site)),
    ...(await listMutations(site)),
  ];
  return routes.filter((route) => !/^(HEAD|OPTIONS) /.test(route)).sort();
}

/** Documents in OpenAPI name the routes of tables and functions. */
async function listUserRoutes(site: Site): Promise<string[]> {
  const headers = { Authorization: `Bearer ${site.adminToken}` };
  const tables = (await ask(site, "/rest/v1/", { headers })).json;
  const collections = (await ask(site, OPENAPI_PATH, { headers })).json;
  const routesOf = (paths: Readonly<Record<string, object>>, prefix = ""): string[] =>
    Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods)
        .filter((method) => /^(get|post|put|patch|delete)$/.test(method))
        .map((method) => `${method.toUpperCase()} ${prefix}${path}`),
    );
  return [...routesOf(tables.paths, "/rest/v1"), ...routesOf(collections.paths)].filter((route) =>
    / \/(rest\/v1\/(users|rpc\/)|users|api\/v\d+\/users)/.test(route),
  );
}

async function listMutations(site: Site): Promise<string[]> {
  const query = "{ __schema { mutationType { fields { name } } } }";
  const { json } = await post(site, "/graphql", { query }, { Authorization: `Bearer ${site.adminToken}` });
  return json.data.__schema.mutationType.fields.map(({ name }: { name: string }) => `mutation ${name}`);
}

/** The sources of the router's routes: listed above, or why they concern no address. */
export const SERVED: Readonly<Record<string, string>> = {
  "shared.healthRoutes": "health",
  signInRoutes: "listed",
  signInFolders: "listed",
  documents: "documents in OpenAPI",
  "shared.referenceRoutes": "pages about the interfaces",
  startPage: "a page",
  "[TABLE_PREFIX": "listed",
  "[SHAPES_PATH": "rows that are read; nothing is written",
  storageFolder: "files: an object has an owner, and no address",
  "[FUNCTIONS_PREFIX": "code of the project, which is trusted",
  mcpFolder: "tools for rows and functions, which the other interfaces serve too",
  adminFolder: "listed",
  "graphql.folders": "listed",
  "realtime.handlersByPath": "channels, which write nothing",
  "shared.guideFolder": "pages",
  "shared.studioFolder": "pages",
  withTaskRoutes: "listed; tasks are requests of the others",
};

/** Returns the names in the source that are given to the router as routes, folders and the rest. */
export async function listServed(): Promise<string[]> {
  const text = await readFile(join(REPOSITORY, "service/wiring/request-handlers.ts"), "utf8");
  const source = text.replaceAll("...acknowledged({", "").replaceAll(/\.\.\.acknowledged\w*\(/g, "...");
  const entries = ["const authAndHealthRoutes = {", "  const routes = {", "  const folders = {"].flatMap((start) => {
    const [, after = ""] = source.split(start);
    return after.slice(0, after.search(/\};\n/)).split(/\n|, (?=\.\.\.)/);
  });
  const [, fallback = ""] = /fallback: queueTask \? (\w+)/.exec(source) ?? [];
  const names = entries.flatMap((entry) => /^\s*(?:\.\.\.(?:\(.* : )?)?(\[?[\w.]+)/.exec(entry)?.[1] ?? []);
  return [...new Set([...names, fallback])].filter((name) => name !== "authAndHealthRoutes").sort();
}

/** The routes that the steps of these ways take. */
export function takenBy(ways: readonly Way[], routes: readonly string[]): Set<string> {
  const requests = ways.flatMap(({ steps }) => steps.flatMap(requestsOf));
  return new Set(routes.filter((route) => requests.some((request) => matches(route, request))));
}

function requestsOf(step: string): string[] {
  const [, method = "", path = "", body = ""] = /^(?:@\w+ )?(\S+) ?(\S*) ?(.*)$/s.exec(step)!;
  if (method === "MAIL") return [];
  const [bare = ""] = path.split("?");
  if (method === "SAML") return [`GET ${bare}`, `POST ${bare.replace("sign-in", "callback")}`];
  if (method === "OPENID")
    return [`GET ${bare}`, `GET ${bare.replace("sign-in", "callback").replace("authorize", "callback")}`];
  if (path === "{link}") return ["GET /auth/v1/verify"];
  const mutation = /mutation \{ (\w+)/.exec(body)?.[1];
  return [`${method === "FORM" ? "POST" : method} ${bare}`, ...(mutation ? [`mutation ${mutation}`] : [])];
}

function matches(route: string, request: string): boolean {
  const [pattern, parts] = [route.split("/"), request.split("/")];
  return (
    pattern.length === parts.length && pattern.every((part, index) => /^\{.*\}$/.test(part) || part === parts[index])
  );
}
