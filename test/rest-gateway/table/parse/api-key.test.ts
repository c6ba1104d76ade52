import { describe, expect, test } from "vitest";
import { queryWithoutApiKey } from "../../../../rest-gateway/table/parse/query-string.ts";

describe("the query of a request, for any caller", () => {
  test("is the same with the key in the URL as in its header", () => {
    expect(queryWithoutApiKey({}, "apikey=secret&select=id")).toBe("select=id");
    expect(queryWithoutApiKey({}, "select=id&apikey=secret")).toBe("select=id");
    expect(queryWithoutApiKey({}, "select=id;apikey=secret;limit=1")).toBe("select=id&limit=1");
    expect(queryWithoutApiKey({ apikey: "secret" }, "select=id")).toBe("select=id");
    expect(queryWithoutApiKey({}, "apikey=secret")).toBe("");
  });

  test("keeps filters on columns with that name", () => {
    expect(queryWithoutApiKey({ apikey: "secret" }, "apikey=eq.a&select=id")).toBe("apikey=eq.a&select=id");
    expect(queryWithoutApiKey({}, "apikey=secret&apikey=eq.a")).toBe("apikey=eq.a");
    expect(queryWithoutApiKey({}, "api_key=eq.a")).toBe("api_key=eq.a");
  });
});
