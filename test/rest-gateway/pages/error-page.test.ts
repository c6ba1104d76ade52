import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { text } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { describeInBrowser, launchBrowser } from "../../browser.ts";
import { useDatabase } from "../../database.ts";
import { useFixture } from "../../fixture.ts";
import { serve, useService } from "../../serve.ts";

const BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
const NAVIGATION = { Accept: BROWSER, "Sec-Fetch-Mode": "navigate" };
const HTML = "text/html; charset=utf-8";

const database = useDatabase();
const service = useService({ database, settings: { REST_REQUIRE_APIKEY: "false" } });

type Sent = { readonly method?: string; readonly body?: string; readonly url?: string };

/** Sends a request without fetch, which says that it is a script. */
async function ask(path: string, headers: Record<string, string> = {}, sent: Sent = {}) {
  const { method = "GET", body = "", url = service.url } = sent;
  const outgoing = request(url + path, { method, headers }).end(body);
  const [response] = (await once(outgoing, "response")) as [IncomingMessage];
  return { status: response.statusCode!, headers: response.headers, text: await text(response) };
}

/** Returns the headers that neither differ between any two responses nor describe the body. */
function headersBesidesBody({ headers }: Pick<IncomingMessage, "headers">) {
  const ofBody = ["content-type", "content-length", "content-security-policy", "referrer-policy", "date"];
  return Object.entries(headers).filter(([name]) => !ofBody.includes(name));
}

describe("an error that a browser navigates to", () => {
  test.each([
    ["/nowhere", 404, "RESOURCE_NOT_FOUND"],
    ["/users/nobody", 400, "INVALID_ID"],
    ["/users/999999", 404, "USER_NOT_FOUND"],
    ["/api/v9/users", 400, "UNSUPPORTED_VERSION"],
    ["/api/auth/me", 401, "AUTH_REQUIRED"],
    ["/auth/register", 405, "METHOD_NOT_ALLOWED"],
    ["/rest/v1/nothing", 404, "PGRST205"],
    ["/rest/v1/users?select=nothing", 400, "42703"],
  ])(
    "at %s is a page with the status %i and the code %s, and the headers of the JSON response",
    async (path, status, code) => {
      const fixed = { "X-Request-Id": "one-7", Origin: "https://app.example.org" };
      const page = await ask(path, { ...fixed, ...NAVIGATION });
      expect([page.status, page.headers["content-type"]]).toEqual([status, HTML]);
      expect(page.headers["content-security-policy"]).toMatch(/^default-src 'none';.*frame-ancestors 'none'/);
      expect(page.text).toContain(`<code>${code}</code>`);
      expect(page.text).toContain("<code>one-7</code>");
      const json = await ask(path, { ...fixed, Accept: "application/json" });
      expect([json.status, json.headers["content-type"]]).toEqual([status, "application/json; charset=utf-8"]);
      expect(headersBesidesBody(page)).toEqual(headersBesidesBody(json));
      expect(json.headers.vary).toMatch(/(^|, )Accept(,|$)/);
    },
  );

  test("links to its code in the error reference, or to the reference for another code of Postgres", async () => {
    expect((await ask("/users/nobody", NAVIGATION)).text).toContain('href="/docs/errors#INVALID_ID"');
    const { text: html } = await ask("/rest/v1/users?name=match.(", NAVIGATION);
    expect(html).toContain('<a href="/docs/errors"><code>2201B</code></a>');
  });

  test("that is 401 links to the sign-in page, which leads back without the API key", async () => {
    const { text: html } = await ask("/api/auth/me?a=1&api_key=secret", NAVIGATION);
    expect(html).toContain('href="/auth/sign-in?redirect_to=%2Fapi%2Fauth%2Fme%3Fa%3D1"');
    expect(html).not.toContain("secret");
  });

  test("escapes what the request sent", async () => {
    const evil = encodeURIComponent('"><img src=x onerror=alert(1)>');
    for (const path of [
      `/users?sort=${evil}`,
      `/rest/v1/users?select=${evil}`,
      `/rest/v1/${evil}`,
      `/users?${evil}=1`,
    ]) {
      const { status, text: html } = await ask(path, NAVIGATION);
      expect([path, status >= 400, html.includes("<img")]).toEqual([path, true, false]);
    }
    const { text: html } = await ask(`/users?${evil}=1`, NAVIGATION);
    expect(html).toContain("&lt;img");
  });

  test("is a page for a browser that does not say so, outside the table interface", async () => {
    const { status, headers } = await ask("/nowhere", { Accept: BROWSER });
    expect([status, headers["content-type"]]).toEqual([404, HTML]);
  });

  test("has no body for HEAD", async () => {
    const { status, headers, text: html } = await ask("/nowhere", NAVIGATION, { method: "HEAD" });
    expect([status, headers["content-type"], html]).toEqual([404, HTML, ""]);
  });

  test("is a page for a form that is submitted, too", async () => {
    const form = { ...NAVIGATION, "Content-Type": "application/x-www-form-urlencoded" };
    const { status, headers } = await ask("/nowhere", form, { method: "POST", body: "a=1" });
    expect([status, headers["content-type"]]).toEqual([404, HTML]);
  });
});

describe("an error stays JSON", () => {
  test.each([
    ["of a program that accepts everything", { Accept: "*/*" }],
    ["of a program that names JSON", { Accept: "application/json, text/html" }],
    ["of a program that names a vendor's JSON", { Accept: "text/html;q=0.9, application/vnd.acme.v2+json" }],
    ["of a script, whose Accept the page chose", { Accept: BROWSER, "Sec-Fetch-Mode": "cors" }],
  ])("in a response %s", async (_whose, headers) => {
    for (const path of ["/nowhere", "/users/nobody", "/rest/v1/nothing"]) {
      const response = await ask(path, headers as Record<string, string>);
      expect([path, response.headers["content-type"]]).toEqual([path, "application/json; charset=utf-8"]);
    }
  });

  test("at the table interface for a program that accepts HTML only", async () => {
    const { status, headers, text: body } = await ask("/rest/v1/users", { Accept: "text/html" });
    expect([status, headers["content-type"]]).toEqual([406, "application/json; charset=utf-8"]);
    expect(JSON.parse(body)).toMatchObject({ code: "PGRST107" });
  });

  test("in a response to a write of a program that accepts HTML", async () => {
    const headers = { Accept: BROWSER, "Content-Type": "application/json" };
    for (const path of ["/users", "/graphql", "/rest/v1/users"]) {
      const response = await ask(path, headers, { method: "POST", body: "{" });
      expect([path, response.headers["content-type"]]).toEqual([
        path,
        expect.stringMatching(/^application\/(graphql-response\+)?json/),
      ]);
    }
  });
});

test("a successful response to a browser stays JSON", async () => {
  const { status, headers } = await ask("/users", { Accept: BROWSER });
  expect([status, headers["content-type"]]).toEqual([200, "application/json; charset=utf-8"]);
});

test("PGRST_ERROR_VERBOSITY=minimal hides details and hints on the page, too", async () => {
  const path = "/rest/v1/userz";
  expect((await ask(path, NAVIGATION)).text).toContain("Perhaps you meant");
  const minimal = await serve(database, { REST_REQUIRE_APIKEY: "false", PGRST_CLIENT_ERROR_VERBOSITY: "minimal" });
  try {
    const { headers, text: html } = await ask(path, NAVIGATION, { url: minimal.url });
    expect(headers["content-type"]).toBe(HTML);
    expect(html).not.toContain("Perhaps you meant");
  } finally {
    await minimal.stop();
  }
});

describeInBrowser("an error page in a browser", () => {
  const browser = useFixture(launchBrowser);

  test("shows the status and leads to the start page, while scripts get JSON", async () => {
    const page = await browser.newPage();
    await page.goto(`${service.url}/nowhere`);
    expect(await page.getByRole("heading", { level: 1 }).textContent()).toBe("404 Not Found");
    await page.getByRole("link", { name: "Start page" }).click();
    expect(new URL(page.url()).pathname).toBe("/");
    const answer = await page.request.get(`${service.url}/nowhere`, {
      headers: { "Sec-Fetch-Mode": "cors", Accept: BROWSER },
    });
    expect(await answer.json()).toMatchObject({ error: { code: "RESOURCE_NOT_FOUND" } });
    await page.close();
  });
});
