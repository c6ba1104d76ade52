import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { ADMIN_EMAIL, openOperatedService, tokenFor } from "./operated-service.ts";

const ROUTES_FOLDER = "operations/admin";
const SESSION = "POST /admin/v1/session";

/** All routes of the source, such as "GET /admin/v1/doctor". */
const routes = await (async () => {
  const names = (await readdir(ROUTES_FOLDER)).filter((name) => name.endsWith("-routes.ts"));
  const texts = await Promise.all(names.map((name) => readFile(join(ROUTES_FOLDER, name), "utf8")));
  return texts
    .flatMap((text) => [...text.matchAll(/^ {4}"(GET|POST|PUT|PATCH|DELETE) (\/[^"]*)":/gm)])
    .map(([, method, path]) => `${method} /admin/v1${path}`)
    .sort();
})();
const protectedRoutes = routes.filter((route) => route !== SESSION);

const operated = useFixture(() => openOperatedService({ STUDIO: "administrators", STUDIO_SQL: "on" }));

async function statusOf(route: string, sent: { token?: string; headers?: Record<string, string> } = {}) {
  const [method, path] = route.split(" ") as [string, string];
  const body = method === "POST" ? {} : undefined;
  return (await operated.send(path.replace(/\{\w+\}/, "1"), { method, body, ...sent })).status;
}

test("the routes are found in the source", () => {
  expect(routes.length).toBeGreaterThan(10);
});

describe("all routes of /admin/v1 are for administrators only", () => {
  test.each(protectedRoutes)("%s", async (route) => {
    const viewAs = { token: operated.tokens.admin, body: { user: operated.adminId } };
    const { access_token: viewed } = (await operated.send("/admin/v1/view-as", viewAs)).body;
    const { cookie, ...csrf } = await operated.signIn(ADMIN_EMAIL);
    const isChange = !route.startsWith("GET ");
    expect({
      anonymous: await statusOf(route),
      user: await statusOf(route, { token: operated.tokens.user }),
      server: await statusOf(route, { token: operated.tokens.service }),
      anonKey: await statusOf(route, { token: tokenFor({ role: "anon" }) }),
      viewedAdministrator: await statusOf(route, { token: viewed }),
      forged: await statusOf(route, { token: `${operated.tokens.admin}x` }),
      cookieWithoutCsrfToken: isChange ? await statusOf(route, { headers: { cookie } }) : 403,
      cookieOfAnotherSite: isChange
        ? await statusOf(route, {
            headers: { cookie, ...csrf, origin: "https://evil.example", "sec-fetch-site": "cross-site" },
          })
        : 403,
    }).toEqual({
      anonymous: 401,
      user: 403,
      server: 403,
      anonKey: 403,
      viewedAdministrator: 403,
      forged: 401,
      cookieWithoutCsrfToken: 403,
      cookieOfAnotherSite: 403,
    });
    // The requests above are refused for their callers, not for their contents.
    expect([401, 403]).not.toContain(await statusOf(route, { token: operated.tokens.admin }));
  });

  test("a key of the role admin is accepted", async () => {
    const made = await operated.send("/auth/keys", { token: operated.tokens.admin, body: { role: "admin" } });
    expect(await statusOf("GET /admin/v1/catalog", { headers: { "x-api-key": made.body.key } })).toBe(200);
    expect(await statusOf(SESSION, { headers: { "x-api-key": made.body.key } })).toBe(403);
  });
});

test("responses, errors too, are not stored by caches", async () => {
  for (const sent of [{}, { token: operated.tokens.user }, { token: operated.tokens.admin }]) {
    const { headers } = await operated.send("/admin/v1/doctor", sent);
    expect(headers["cache-control"]).toBe("no-store");
  }
});

test("tokens are not logged", async () => {
  const headers = await operated.signIn(ADMIN_EMAIL);
  const session = (await operated.send("/admin/v1/session", { method: "POST", headers })).body;
  const viewed = (
    await operated.send("/admin/v1/view-as", { token: session.access_token, body: { user: operated.userId } })
  ).body;
  const logged = operated.logged();
  expect(logged).toContain("studio.viewed_as");
  for (const token of [session.access_token, viewed.access_token, headers.cookie.split("=")[1]!]) {
    expect(logged).not.toContain(token);
  }
});

test("with STUDIO=off no route exists, nor a page", async () => {
  const other = await openOperatedService({ STUDIO: "off" });
  try {
    for (const route of [...routes, "GET /studio", "GET /studio/tables", "GET /studio/app/main.js"]) {
      const [method, path] = route.split(" ") as [string, string];
      const { status } = await other.send(path.replace(/\{\w+\}/, "1"), { method, token: other.tokens.admin });
      expect([route, status]).toEqual([route, 404]);
    }
  } finally {
    await other.close();
  }
});
