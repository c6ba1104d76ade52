import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { useFixture } from "../fixture.ts";
import { describeInBrowser, openStudio, readDocumentedRoutes } from "./studio.ts";

describeInBrowser("pages of other sites", () => {
  const studio = useFixture(openStudio);
  const others = useFixture(() =>
    createServer((_request, response) => {
      response.setHeader("Content-Type", "text/html").end("<!doctype html><title>Another site</title>");
    }),
  );
  beforeAll(async () => {
    await new Promise<void>((resolve) => others.listen(0, "127.0.0.1", resolve));
  });

  async function openOther(host: string): Promise<Page> {
    const page = await studio.browser.newPage();
    await page.goto(`http://${host}:${(others.address() as AddressInfo).port}/`);
    return page;
  }

  test.each(["localhost", "127.0.0.1"])("at %s get no token where Studio is open", async (host) => {
    const page = await openOther(host);
    const status = await page.evaluate(async (url) => {
      const response = await fetch(`${url}/admin/v1/session`, { method: "POST" });
      return response.status;
    }, studio.service.url);
    expect(status).toBe(401);
    await page.close();
  });

  test("get no token by a form either", async () => {
    const page = await openOther("localhost");
    const answered = page.waitForResponse((response) => response.url().endsWith("/admin/v1/session"));
    await page.evaluate((url) => {
      const form = document.createElement("form");
      form.method = "post";
      form.action = `${url}/admin/v1/session`;
      document.body.append(form);
      form.submit();
    }, studio.service.url);
    expect((await answered).status()).toBe(401);
    await page.close();
  });

  test("cannot show Studio in a frame", async () => {
    const page = await openOther("localhost");
    await page.evaluate((url) => {
      const frame = document.createElement("iframe");
      frame.src = `${url}/studio`;
      return new Promise((resolve) => {
        frame.onload = resolve;
        document.body.append(frame);
      });
    }, studio.service.url);
    await expect.poll(() => page.frames()[1]!.url()).toBe("chrome-error://chromewebdata/");
    await page.close();
  });

  test("cannot load its modules", async () => {
    const page = await openOther("localhost");
    const isLoaded = await page.evaluate(
      (url) => import(`${url}/studio/app/main.js`).then(() => true).catch(() => false),
      studio.service.url,
    );
    expect(isLoaded).toBe(false);
    await page.close();
  });

  test("Studio puts no token into an address, a cookie or the storage of the browser", async () => {
    const own = await studio.open("/studio/tables");
    for (const part of ["access", "sql", "schema", "files", "people", "running"]) {
      await own.goto(`${studio.service.url}/studio/${part}`);
      await own.getByRole("heading", { level: 1 }).first().waitFor();
    }
    expect(studio.requests.length).toBeGreaterThan(10);
    expect(studio.requests.filter(({ url }) => url.includes("eyJ"))).toEqual([]);
    const kept = await own.evaluate(() =>
      JSON.stringify([document.cookie, { ...localStorage }, { ...sessionStorage }]),
    );
    expect(kept).not.toContain("eyJ");
    await own.close();
  });

  test.each([
    ["GET", "/admin/v1/running", true],
    ["DELETE", "/admin/v1/sessions/s.7", true],
    ["POST", "/admin/v1/session", true],
    ["GET", "/csrf-token", true],
    ["POST", "/admin/v1/running", false],
    ["GET", "/admin/v1/session", false],
    ["GET", "/admin/v1/running/", false],
    ["DELETE", "/admin/v1/running", false],
    ["DELETE", "/admin/v1/sessions/s/7", false],
    ["GET", "/admin/v1/secrets", false],
    ["GET", "/admin/v10/running", false],
  ])("are told from Studio by the document of its requests: %s %s is in it: %s", async (method, path, expected) => {
    const isDocumented = await readDocumentedRoutes(studio.service.url);
    expect(isDocumented(method, path)).toBe(expected);
  });
});
