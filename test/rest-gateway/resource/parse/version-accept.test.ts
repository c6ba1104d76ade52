import { expect, test } from "vitest";
import { negotiateType } from "../../../../rest-gateway/resource/parse/versions.ts";

const JSON_TYPE = "application/json; charset=utf-8";

test.each([
  [undefined, JSON_TYPE, null, false],
  ["*/*", JSON_TYPE, null, false],
  ["application/json", JSON_TYPE, null, false],
  ["Application/JSON; charset=utf-8", JSON_TYPE, null, false],
  ["text/html, application/*;q=0.1", JSON_TYPE, null, false],
  ["application/hal+json", "application/hal+json; charset=utf-8", null, true],
  ["application/json;q=0.5, application/hal+json", "application/hal+json; charset=utf-8", null, true],
  ["application/vnd.acme.v2+json", "application/vnd.acme.v2+json; charset=utf-8", "2", false],
  ["application/vnd.acme.shop.v10+json", "application/vnd.acme.shop.v10+json; charset=utf-8", "10", false],
  ["application/vnd.acme.v2.1+json", "application/vnd.acme.v2.1+json; charset=utf-8", "2.1", false],
  ["application/vnd.acme.v2.+json", "application/vnd.acme.v2.+json; charset=utf-8", "2.", false],
  ["application/vnd.v2+json", "application/vnd.v2+json; charset=utf-8", "2", false],
  ["application/vnd.acme.v2x+json", "application/vnd.acme.v2x+json; charset=utf-8", "2x", false],
  [
    "application/vnd.acme.v2-beta.one+json",
    "application/vnd.acme.v2-beta.one+json; charset=utf-8",
    "2-beta.one",
    false,
  ],
  ["application/vnd.v8engine.v2+json", "application/vnd.v8engine.v2+json; charset=utf-8", "2", false],
  ["application/vnd.v8engine.shop+json", "application/vnd.v8engine.shop+json; charset=utf-8", null, false],
  ["application/vnd.acme.vx+json", "application/vnd.acme.vx+json; charset=utf-8", null, false],
  ["", JSON_TYPE, null, false],
  [" ", JSON_TYPE, null, false],
  ["application/vnd.acme+json", "application/vnd.acme+json; charset=utf-8", null, false],
  ["application/json, application/vnd.acme.v2+json;q=0.9", JSON_TYPE, null, false],
  ["application/json;q=0, */*", "application/hal+json; charset=utf-8", null, true],
  ["*/*, application/hal+json;q=0", JSON_TYPE, null, false],
])("%s gets the media type %s", (accept, contentType, version, links) => {
  expect(negotiateType(accept)).toEqual({ contentType, version, links });
});

test.each([
  "text/html",
  "application/xml",
  "application/json;q=0",
  "application/json;q=0, application/hal+json;q=0, */*",
  "application/jsonp",
])("%s is not acceptable", (accept) => {
  expect(() => negotiateType(accept)).toThrow(expect.objectContaining({ status: 406, code: "NOT_ACCEPTABLE" }));
});
