import { describe, expect, test } from "vitest";
import { makeRouteTemplateFinder } from "../../http/observe-requests.ts";

const routeOf = makeRouteTemplateFinder({
  paths: ["/health", "/auth/login"],
  folders: ["/rest/v1", "/graphql", "/realtime/v1/api", "/auth/providers"],
});

describe("the route template of a request", () => {
  test.each([
    ["/health", "service", "/health"],
    ["/auth/login", "auth", "/auth/login"],
    ["/auth/providers/office/start", "auth", "/auth/providers/{name}"],
    ["/rest/v1", "table", "/rest/v1/"],
    ["/rest/v1/", "table", "/rest/v1/"],
    ["/rest/v1/things", "table", "/rest/v1/{table}"],
    ["/rest/v1/rpc/add", "table", "/rest/v1/rpc/{function}"],
    ["/graphql", "graphql", "/graphql"],
    ["/realtime/v1/api/broadcast", "realtime", "/realtime/v1/api/{name}"],
    ["/things", "resource", "/{collection}"],
    ["/things/17", "resource", "/{collection}/{id}"],
    ["/api/v2/things/17/parts/4", "resource", "/api/v2/{collection}/{id}/{name}/{id}"],
    ["/api/v1/things/17/paint", "resource", "/api/v1/{collection}/{id}/{name}"],
  ])("%s belongs to the interface %s, as %s", (path, name, template) => {
    expect(routeOf(path)).toEqual({ interface: name, template });
  });

  test("unknown paths create no further templates", () => {
    const tried = Array.from({ length: 500 }, (_, index) => `/${"x/".repeat(index % 50)}${index}?${index}`);
    const versions = Array.from({ length: 500 }, (_, index) => `/api/v${index}/things`);
    const templates = new Set([...tried, ...versions].map((path) => routeOf(path).template));
    expect(templates.size).toBeLessThan(20);
  });

  test("a template is always the same object", () => {
    expect(routeOf("/things/1")).toBe(routeOf("/others/2"));
  });
});
