import { describe, expect, test } from "vitest";
import { useService } from "../../serve.ts";

const service = useService({ template: "empty" });

const get = (path: string, headers: Record<string, string> = {}) => fetch(service.url + path, { headers });

describe("/docs", () => {
  test("is a page that loads only from this server, and whose policy allows no more", async () => {
    const response = await get("/docs");
    const html = await response.text();
    const policy = response.headers.get("content-security-policy")!;
    expect(response.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(html.match(/(src|href)="https?:/g)).toBeNull();
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("script-src 'self';");
    expect(policy).not.toContain("unsafe");
  });

  test.each(["/docs/reference-page.js", "/docs/schema-text.js"])("serves %s, with an ETag", async (path) => {
    const response = await get(path);
    expect(response.headers.get("content-type")).toBe("text/javascript; charset=utf-8");
    const again = await get(path, { "If-None-Match": response.headers.get("etag")! });
    expect(again.status).toBe(304);
  });

  test.each(["/docs/api-reference.css", "/docs/api-reference.ts", "/docs/nothing.js"])(
    "serves nothing at %s",
    async (path) => {
      expect((await get(path)).status).toBe(404);
    },
  );
});
