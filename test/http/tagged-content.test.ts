import { brotliDecompressSync } from "node:zlib";
import { expect, it } from "vitest";
import { compressResponse, contentResponse, tagContent } from "../../http/tagged-content.ts";

const HEADERS = { "Content-Type": "text/css", "Content-Encoding": "br", "Cache-Control": "no-cache" };
const content = tagContent("main {}", HEADERS);
const { ETag } = content.headers;

it("content is sent with its headers and its tag", () => {
  expect(contentResponse(content, undefined)).toEqual({ status: 200, headers: { ...HEADERS, ETag }, body: "main {}" });
});

it.each([
  ["the same tag", ETag],
  ["a weak form of the tag", `W/${ETag}`],
  ["a list with the tag", `"other", ${ETag}`],
  ["any tag", "*"],
])("a client that has %s gets 304 without the headers that describe the body", (_, known) => {
  expect(contentResponse(content, known)).toEqual({
    status: 304,
    headers: { "Cache-Control": "no-cache", ETag },
    body: null,
  });
});

it.each([
  ["another tag", '"other"'],
  ["no quotation marks", ETag.slice(1, -1)],
])("a client with %s gets the content", (_, known) => {
  expect(contentResponse(content, known)).toMatchObject({ status: 200, body: "main {}" });
});

it("other bytes have another tag, and the same bytes the same one", () => {
  expect(tagContent("main { }", HEADERS).headers.ETag).not.toBe(ETag);
  expect(tagContent(Buffer.from("main {}"), {}).headers.ETag).toBe(ETag);
});

it("a response is compressed for clients that accept it, under the same tag", async () => {
  const headers = { "Content-Type": "application/json", ETag: 'W/"tag"' };
  const response = { status: 200, headers, body: "[1, 2, 3]" } as const;
  const compressed = await compressResponse(response, { "accept-encoding": "gzip, br" });
  expect(compressed.headers).toEqual({ ...headers, "Content-Encoding": "br" });
  expect(brotliDecompressSync(compressed.body as Buffer).toString()).toBe(response.body);
  for (const accepted of [undefined, "gzip", "br;q=0"]) {
    expect(await compressResponse(response, { "accept-encoding": accepted })).toBe(response);
  }
  const unchanged = { status: 304, headers, body: null } as const;
  expect(await compressResponse(unchanged, { "accept-encoding": "br" })).toBe(unchanged);
});
