import { expect, test } from "vitest";
import { queryWithoutApiKey } from "../../http/credentials.ts";

test("an API key in the query string does not change the query", () => {
  expect(queryWithoutApiKey("api_key=secret&limit=1")).toBe("limit=1");
  expect(queryWithoutApiKey("limit=1&api_key=secret&sort=id")).toBe("limit=1&sort=id");
  expect(queryWithoutApiKey("api_key=secret")).toBe("");
  expect(queryWithoutApiKey("key=a&name=api_key%3D1")).toBe("key=a&name=api_key%3D1");
});
