import { expect, it } from "vitest";
import { contentResponse, tagContent } from "../../http/tagged-content.ts";

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
